"""Values of Temporal as JSON, through msgspec."""

from typing import Any, Final

import msgspec
from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    BinaryNullPayloadConverter,
    CompositePayloadConverter,
    DataConverter,
    EncodingPayloadConverter,
)


class StructPayloadConverter(EncodingPayloadConverter):
    """Writes any value that msgspec can write, and reads it as its declared type."""

    @property
    def encoding(self) -> str:
        """The encoding that a payload names."""
        return "json/plain"

    def to_payload(self, value: Any) -> Payload | None:
        """Return a value as JSON."""
        return Payload(metadata={"encoding": self.encoding.encode()}, data=msgspec.json.encode(value))

    def from_payload(self, payload: Payload, type_hint: type[Any] | None = None) -> Any:
        """Return the value of a payload. Raises ``msgspec.ValidationError`` if it is not of its type."""
        return msgspec.json.decode(payload.data, type=Any if type_hint is None else type_hint)


class Converter(CompositePayloadConverter):
    """The converters of a cluster."""

    def __init__(self) -> None:
        """Write nothing at all for None, and everything else through msgspec."""
        super().__init__(BinaryNullPayloadConverter(), StructPayloadConverter())


CONVERTER: Final = DataConverter(payload_converter_class=Converter)
"""The converter of every client of a cluster."""
