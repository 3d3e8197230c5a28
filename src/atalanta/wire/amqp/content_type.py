"""The content types of text in UTF-8 (AMQPContentTypeSupport)."""

from __future__ import annotations

from typing import Final

TEXT_APPLICATIONS: Final = ("xml", "json", "javascript", "xml-dtd", "ecmascript")
TEXT_SUFFIXES: Final = ("+xml", "+json")


def is_utf8_text(content_type: str) -> bool:
    """Returns True for text in UTF-8; text in another charset is bytes to a CORE client."""
    media_type, _, parameters = content_type.lower().partition(";")
    main, slash, sub = (part.strip() for part in media_type.partition("/"))
    if not slash or not sub:
        return False
    if main != "text" and not (
        main == "application" and (sub in TEXT_APPLICATIONS or sub.endswith(TEXT_SUFFIXES))
    ):
        return False
    for parameter in parameters.split(";"):
        name, equals, value = parameter.partition("=")
        if equals and name.strip() == "charset":
            return value.strip().strip('"') == "utf-8"
    return True
