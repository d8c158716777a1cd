# The static command, its manual and its licences, in an image that has nothing else:
#   docker build -t sluice . && seq 5 | docker run -i --rm sluice dedup
FROM debian:bookworm-slim AS build
COPY . /sluice
WORKDIR /sluice
RUN ./dev package static && tar -xJf build/package/sluice-*-linux-*.tar.xz --strip-components=1 -C /opt

FROM scratch
COPY --from=build /opt /
ENTRYPOINT ["/sluice"]
