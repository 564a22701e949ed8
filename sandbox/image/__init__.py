"""Container images without a container engine: Debian roots, the Dockerfile run in one, docker-archives."""
