#!/usr/bin/env bash
# The Debian packages in a clean Debian 12 (debootstrap, as root, from this machine's mirror): apt installs
# them with what they depend on, the session of the README runs, examples/embed builds with libsluice-dev,
# and removing them leaves nothing. Then the unpacked source archive is built there, by `./dev demo` and by
# the steps of the Dockerfile, and makes the same packages byte for byte. Only with full counts: it compiles
# everything a second time.
# shellcheck source=tests/packaging/lib.sh
. "$(dirname "$0")/lib.sh"
skip() {
  echo "Packages are not tried in a clean root: $*."
  exit 77
}
[[ ${SLUICE_COUNTS:-full} == full ]] || skip "only with full counts"
[[ $EUID -eq 0 ]] || skip "that needs root"
command -v debootstrap >/dev/null || skip "debootstrap is not installed"
# shellcheck disable=SC2016  # apt's variable
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Origin: Debian' 'Codename: bookworm' | head -n 1)
[[ -n $mirror ]] || skip "apt knows no mirror of Debian 12"
packages=$(made_packages)
root=$scratch/root

debootstrap --variant=minbase bookworm "$root" "$mirror" >"$scratch/debootstrap.log" 2>&1 || {
  tail -n 3 "$scratch/debootstrap.log" >&2
  skip "debootstrap failed, maybe because the mirror cannot be reached"
}
# The same versions as here: with its updates, and by its proxy.
# shellcheck disable=SC2016  # apt's variables
apt-get indextargets --format 'deb $(SITE) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian' \
  >"$root/etc/apt/sources.list"
apt-config dump Acquire | grep -i proxy >"$root/etc/apt/apt.conf.d/90proxy" || true

# inside COMMAND...: in the root, with mounts that end with it.
inside() {
  # shellcheck disable=SC2016  # the inner shell's
  unshare --mount --pid --fork bash -c '
    mount -t proc proc "$0/proc" && exec chroot "$0" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin \
      HOME=/root DEBIAN_FRONTEND=noninteractive SOURCE=/sluice BUILD=/sluice SLUICE=/usr/bin/sluice CXX=c++ "$@"' \
    "$root" "$@"
}
# apt ARG...: quiet, and all it said if it fails.
apt() {
  inside apt-get --quiet=2 -o Dpkg::Use-Pty=0 --yes --no-install-recommends "$@" >"$scratch/apt.log" 2>&1 ||
    { cat "$scratch/apt.log" >&2; complain "apt-get $* fails"; finish; }
}
# Without what apt, dpkg and ldconfig keep for themselves.
files() {
  (cd "$root" && find . -path ./proc -prune -o -path ./sluice -prune -o -path ./packages -prune -o \
    -path ./var/cache -prune -o -path ./var/log -prune -o -path './var/lib/dpkg/*-old' -prune -o \
    -path ./var/lib/apt -prune -o -path ./tmp -prune -o -print | sort)
}

mkdir "$root/packages" "$root/sluice"
cp "$packages"/*.deb "$root/packages"
tar --extract --file "$(find "$packages" -name 'sluice-*.tar.xz' ! -name '*-linux-*')" \
  --directory "$root/sluice" --strip-components=1
apt update
before=$(files)

# --- The command
apt install "/packages/$(cd "$packages" && ls sluice_*.deb)"
inside bash /sluice/tests/packaging/sessions_test.sh README.md 3 || complain "the session of the README fails"
apt purge --autoremove sluice
same "files that sluice leaves" "$before" "$(files)"

# --- The library, as an outsider uses it
apt install "/packages/$(cd "$packages" && ls libsluice-dev_*.deb)" cmake g++ make
inside sh -c 'cmake -S /sluice/examples/embed -B /tmp/embed && cmake --build /tmp/embed' >"$scratch/embed.log" 2>&1 ||
  { cat "$scratch/embed.log" >&2; complain "examples/embed does not build"; }
same "embed, built by CMake" "$(cat "$SOURCE/examples/embed/expected.txt")" "$(inside /tmp/embed/embed)"
# shellcheck disable=SC2016  # the inner shell's
inside sh -c 'c++ -std=c++20 /sluice/examples/embed/main.cpp -o /tmp/embed-pc $(pkg-config --cflags --libs sluice)' ||
  complain "embed does not build with pkg-config"
same "embed, built by pkg-config" "$(cat "$SOURCE/examples/embed/expected.txt")" "$(inside /tmp/embed-pc)"
apt purge --autoremove libsluice-dev cmake g++ make
same "files that libsluice-dev leaves" '' "$(comm -13 <(echo "$before") <(files) | grep -i sluice)"

# --- The module, in Debian's Redis. No service is started: it would not end with this test.
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod +x "$root/usr/sbin/policy-rc.d"
before=$(files)
apt install redis-server "/packages/$(cd "$packages" && ls redis-sluice_*.deb)"
# shellcheck disable=SC2016  # the inner shell's
same "what the module answers" $'1\n1\n0' "$(inside sh -c '
  redis-server --port 0 --unixsocket /tmp/redis.sock --save "" --loadmodule /usr/lib/redis/modules/sluice.so >/tmp/redis.log &
  until redis-cli -s /tmp/redis.sock PING >/dev/null 2>&1; do
    kill -0 $! 2>/dev/null || { cat /tmp/redis.log >&2; exit 1; }
    sleep 0.1
  done
  redis-cli -s /tmp/redis.sock SLUICE.INSERT clicks WINDOW 10m ITEMS a b a
  redis-cli -s /tmp/redis.sock SHUTDOWN NOSAVE
  wait')"
apt purge redis-sluice
same "files of Redis that redis-sluice takes along" "/usr/bin/redis-server" "$(inside sh -c 'ls /usr/bin/redis-server')"
apt purge --autoremove redis-server
rm "$root/usr/sbin/policy-rc.d"
same "files that redis-sluice leaves" '' "$(comm -13 <(echo "$before") <(files) | grep -iE 'sluice|lib/redis')"

# --- A build from nothing but a minimal Debian, as a first user and as the Dockerfile do it
run=$(sed -n 's/^RUN //p' "$root/sluice/Dockerfile")
if ! grep -qx 'COPY . /sluice' "$root/sluice/Dockerfile" || [[ $run != './dev package static && '* ]]; then
  complain "the Dockerfile has other steps than are tried here: $run"
fi
in_tree() { inside sh -c "cd /sluice && $1" >"$scratch/build.log" 2>&1; }
if in_tree './dev demo'; then
  grep -q 'distinct events lost, measured' "$scratch/build.log" || complain "the demo does not get to its end"
  in_tree "$run" || { cat "$scratch/build.log" >&2; complain "the build step of the Dockerfile fails"; }
  same "the command in the image" "$("$SLUICE" --version)" "$("$root/opt/sluice" --version)"
  in_tree './dev package --no-check' || { cat "$scratch/build.log" >&2; complain "./dev package fails"; }
  if [[ -e $SOURCE/.git && -n $(git -C "$SOURCE" status --porcelain) ]]; then
    echo "Packages built twice are not compared: the source archive lacks changes that are not committed."
  else
    same "packages built twice" "$(cat "$packages/SHA256SUMS")" "$(cat "$root/sluice/build/package/SHA256SUMS")"
  fi
else
  cat "$scratch/build.log" >&2
  complain "./dev demo fails in a minimal Debian"
fi
finish
