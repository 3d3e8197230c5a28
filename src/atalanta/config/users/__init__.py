"""Users, roles, login modules and masked passwords."""
