"""CSV: files with a schema, and one record per message."""

from __future__ import annotations

from holdfast.connectors.formats.csv_files import CsvBulkWriters, CsvReaderFormat
from holdfast.connectors.formats.csv_rows import CsvRowDeserializationSchema, CsvRowSerializationSchema
from holdfast.connectors.formats.csv_schema import CsvSchema, CsvSchemaBuilder

__all__ = [
    "CsvBulkWriters",
    "CsvReaderFormat",
    "CsvRowDeserializationSchema",
    "CsvRowSerializationSchema",
    "CsvSchema",
    "CsvSchemaBuilder",
]
