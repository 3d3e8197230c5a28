"""The pages: each class has the handlers of one subject, and says where they are."""
