# The server with everything that its sandboxes need on bubblewrap. It runs as an ordinary user.
#
#   npm pack && mv owlclaw-*.tgz owlclaw.tgz
#   docker build -t owlclaw -f deploy/docker/server.Dockerfile .
#   docker run --rm -p 127.0.0.1:8080:8080 -v owlclaw-data:/data \
#     --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges \
#     --security-opt seccomp=unconfined --security-opt systempaths=unconfined \
#     -e MCP_AUTH_ENABLED=true -e MCP_AUTH_JWT_SECRET owlclaw
#
# Why the last two options: bubblewrap makes namespaces and mounts of its own for every sandbox, which Docker's profile and its masks
# over /proc forbid. Each sandbox has a filter of its own, stricter than the one that is given up here. Without them the server starts,
# serves handlers and skills, and says what keeps sandboxes from running.
ARG NODE_IMAGE=node:22-bookworm-slim
ARG BASE_IMAGE=debian:bookworm-slim

FROM ${NODE_IMAGE} AS package
WORKDIR /app
COPY owlclaw.tgz /tmp/
RUN npm install --omit=dev --ignore-scripts --no-audit --no-fund /tmp/owlclaw.tgz && rm /tmp/owlclaw.tgz

FROM ${BASE_IMAGE}
ARG PACKAGES="bash bubblewrap ca-certificates chromium fonts-wqy-microhei git libstdc++6 procps python3 python3-matplotlib python3-numpy python3-pandas python3-pil python3-pip python3-requests python3-venv ripgrep util-linux"
RUN apt-get update \
 && apt-get install -y --no-install-recommends ${PACKAGES} \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/* \
 && useradd --uid 10001 --create-home --home-dir /data --shell /usr/sbin/nologin owlclaw
COPY --from=package /usr/local/bin/node /usr/local/bin/node
COPY --from=package /app /app
USER 10001:10001
WORKDIR /data
VOLUME /data
# A container has no cgroup of its own to divide: its own limits hold for all sandboxes together (--memory, --cpus, --pids-limit).
ENV SANDBOX_ROOT=/data/owlclaw \
    MCP_SERVER_HOST=0.0.0.0 \
    MCP_SERVER_PORT=8080 \
    MCP_SERVER_SANDBOX_LIMITS=best-effort
EXPOSE 8080
# With http.tls or without; the certificate is for the names that clients use, not for this one.
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s \
  CMD ["node", "-e", "const ask = (by) => new Promise((tell) => require(by).get({ host: '127.0.0.1', port: process.env.MCP_SERVER_PORT, path: '/health/ready', rejectUnauthorized: false }, (answer) => tell(answer.statusCode === 200)).on('error', () => tell(false))); ask('http').then((ok) => ok || ask('https')).then((ok) => process.exit(ok ? 0 : 1))"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["node", "/app/node_modules/owlclaw/dist/main.js"]
CMD ["mcp-server", "start", "--transport", "http"]
