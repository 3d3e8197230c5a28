"""A running cluster as plain data: what `topology`, `doctor`, `queue stat` and the console show.

`None` means that a broker does not report the value: Artemis reports less than Atalanta nodes. Names of fields end with
their unit; counts are messages if nothing else is said.
"""
