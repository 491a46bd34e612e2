# One image for the API, the worker and the migrations; the command says which. Only the first stage installs anything.
# A registry's digest pins the base harder than its tag: --build-arg PYTHON_IMAGE=python@sha256:…
ARG PYTHON_IMAGE=python:3.13.9-slim-bookworm

FROM ${PYTHON_IMAGE} AS packages
COPY ops/image/requirements.lock /tmp/requirements.lock
RUN python -m venv --without-pip /venv \
 && pip --python /venv/bin/python install --no-cache-dir --disable-pip-version-check \
      --only-binary :all: --require-hashes -r /tmp/requirements.lock

FROM ${PYTHON_IMAGE}
# Nothing in it builds or installs: what breaks in cannot either.
RUN pip uninstall --yes --quiet --root-user-action=ignore pip && rm -rf /usr/local/lib/python3*/ensurepip
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
# Of the command below; who runs a worker says another one (docker-compose.yml).
HEALTHCHECK --interval=5s --timeout=3s --start-period=20s \
  CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8080/healthz', timeout=2)"]
CMD ["python", "-m", "api"]
