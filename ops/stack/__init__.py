"""The whole product on one machine: Postgres, Valkey, API and workers as child processes of one supervisor."""
