# One image for the API, the worker and the migrations; the command says which.
FROM python:3.13-slim-bookworm AS packages
COPY ops/image/requirements.lock /tmp/requirements.lock
RUN python -m venv /venv \
 && /venv/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes -r /tmp/requirements.lock

FROM python:3.13-slim-bookworm
ENV PATH=/venv/bin:$PATH PYTHONPATH=/app PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 COMPACTD_HOST=0.0.0.0
WORKDIR /app
COPY --from=packages /venv /venv
COPY alembic.ini ./
COPY migrations migrations
COPY compaction compaction
COPY worker worker
COPY api api
COPY ops/runbooks ops/runbooks
# Nobody's numeric id, so that Kubernetes can check that it is not root.
USER 65534:65534
EXPOSE 8080
STOPSIGNAL SIGTERM
CMD ["python", "-m", "api"]
