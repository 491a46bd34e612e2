"""`.env.example` tells every setting, and tells it right."""

from __future__ import annotations

import re
from pathlib import Path

from compaction.settings import Settings, settings_from

LINE = re.compile(r"^(#?)([A-Z][A-Z0-9_]*)=(.*)$", re.MULTILINE)
OURS_ALONE = re.compile(  # read by compose, the local stack, the command line or OpenTelemetry's SDK
    r"OTEL_(EXPORTER_OTLP_HEADERS|TRACES_SAMPLER(_ARG)?)|(POSTGRES|VALKEY|GRAFANA)_PASSWORD|COMPACTD_(LOCAL_(DIR|ROOT|POSTGRES|VALKEY)|WORKERS|URL|API_KEY)"
)
MUST = {"COMPACTD_DATABASE_URL": "postgresql+psycopg://x", "COMPACTD_REDIS_URL": "redis://x"}


def examples(repository: Path) -> dict[str, str]:
    """The example's names with the values they are given."""
    return {name: value for _, name, value in LINE.findall((repository / ".env.example").read_text())}


def test_every_setting_stands_in_the_example_and_nothing_else_does(repository: Path) -> None:
    names = {str(field.alias) for field in Settings.model_fields.values()}

    assert {name for name in examples(repository) if not OURS_ALONE.fullmatch(name)} == names


def test_the_values_in_the_example_are_the_defaults(repository: Path) -> None:
    assert settings_from(examples(repository) | MUST) == settings_from(MUST)
