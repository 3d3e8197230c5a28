"""Generic reading and writing of XML and properties files."""
