# What sandboxes of the runtime docker start from: Python with the packages of the python template, Node, git and a shell.
# The guest itself is not in it: each server brings the one that fits, so that one image serves several versions.
#
#   docker build -t owlclaw-sandbox - < deploy/docker/sandbox.Dockerfile
#
# For several architectures: docker buildx build --platform linux/amd64,linux/arm64 … (nothing in it is for one of them)
# A mirror or an image of your own: --build-arg NODE_IMAGE=… --build-arg BASE_IMAGE=…
ARG NODE_IMAGE=node:22-bookworm-slim
ARG BASE_IMAGE=debian:bookworm-slim

FROM ${NODE_IMAGE} AS node

FROM ${BASE_IMAGE}
ARG PACKAGES="bash ca-certificates chromium curl fonts-wqy-microhei git libstdc++6 procps python3 python3-matplotlib python3-numpy python3-pandas python3-pil python3-pip python3-requests python3-venv ripgrep tini"
RUN apt-get update \
 && apt-get install -y --no-install-recommends ${PACKAGES} \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/*
COPY --from=node /usr/local/bin/node /usr/local/bin/node
COPY --from=node /usr/local/lib/node_modules /usr/local/lib/node_modules
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm \
 && ln -s ../lib/node_modules/npm/bin/npx-cli.js /usr/local/bin/npx \
 && useradd --uid 1000 --home-dir /workspace --shell /bin/bash sandbox \
 && install -d -o 1000 -g 1000 /workspace
# Every sandbox gets a user id and a first process of its own when it starts; these are for whoever runs the image by hand.
USER 1000:1000
WORKDIR /workspace
ENTRYPOINT ["/usr/bin/tini", "--"]
CMD ["bash"]
