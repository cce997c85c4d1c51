"""Holdfast: Apache Flink's state model for PySpark."""

__version__ = "0.1.0"
