#!/usr/bin/env bash
# The packages that ./dev package makes have what they should, name their licences, and are the same bytes
# when they are made again; the static command runs where there is nothing else. clean_root_test.sh installs
# them, and builds them a second time.
# shellcheck source=tests/packaging/lib.sh
. "$(dirname "$0")/lib.sh"
[[ ${SLUICE_COUNTS:-full} == full ]] || export PACKING_LEVEL=1
packages=$(made_packages)
version=$("$SLUICE" --version | sed -nE 's/^sluice ([0-9.]+)$/\1/p')
architecture=$(dpkg --print-architecture)
cd "$scratch"

# The module is there if it was built.
debs=(sluice libsluice-dev)
with_module=''
if [[ -f $BUILD/apps/redis/sluice.so ]]; then
  debs+=(redis-sluice)
  with_module=$'\n'redis-sluice_$version-1_$architecture.deb
fi
same "the packages" "SHA256SUMS
libsluice-dev_$version-1_$architecture.deb$with_module
sluice-$version.tar.xz
sluice_$version-1_$architecture.deb" "$(cd "$packages" && find . -type f ! -name '*-linux-*' -printf '%P\n' | sort)"
(cd "$packages" && sha256sum --check --strict --quiet SHA256SUMS) || complain "SHA256SUMS is wrong"

for name in "${debs[@]}"; do
  dpkg-deb --extract "$packages/${name}_$version-1_$architecture.deb" "$name"
done
tar --extract --file "$packages/sluice-$version.tar.xz"
mv "sluice-$version" source
# Where no mirror can be reached, the static command is missing, and lib.sh has said so.
binaries=(sluice/usr/bin/sluice)
texts=(third-party)
if [[ -f $packages/sluice-$version-linux-$architecture.tar.xz ]]; then
  tar --extract --file "$packages/sluice-$version-linux-$architecture.tar.xz"
  mv "sluice-$version-linux-$architecture" static
  binaries+=(static/sluice)
  texts+=(static/THIRD-PARTY)
fi

if [[ -n $with_module ]]; then binaries+=(redis-sluice/usr/lib/redis/modules/sluice.so); fi

for file in "$packages"/*; do
  grep -qF "\`$(basename "$file")\`" "$SOURCE/docs/installing.md" || complain "docs/installing.md does not name $(basename "$file")"
done

# --- What is in them, and what must not be
for file in sluice/usr/bin/sluice sluice/usr/share/man/man1/sluice.1.gz \
  sluice/usr/share/bash-completion/completions/sluice sluice/usr/share/zsh/vendor-completions/_sluice \
  sluice/usr/share/fish/vendor_completions.d/sluice.fish sluice/usr/share/doc/sluice/copyright \
  sluice/usr/share/doc/sluice/changelog.gz \
  libsluice-dev/usr/include/sluice/sluice.hpp libsluice-dev/usr/lib/libsluice.a \
  libsluice-dev/usr/lib/pkgconfig/sluice.pc libsluice-dev/usr/lib/cmake/Sluice/SluiceConfig.cmake \
  libsluice-dev/usr/share/doc/libsluice-dev/copyright \
  "${binaries[@]}" source/LICENSE source/NOTICE source/CMakeLists.txt source/dev; do
  [[ -s $file ]] || complain "$file is missing"
done
if find . -type f -perm /022 | grep .; then complain "others may write these files"; fi
if grep -rlF "$SOURCE" .; then complain "these files name the folder they were built in"; fi
same "sections of symbols and of the compiler" '' \
  "$(readelf --sections --wide "${binaries[@]}" | grep -oE '\.(symtab|debug_[a-z]+|comment)\b')"

# --- Licences: NOTICE has every library that is linked, THIRD-PARTY the texts
mapfile -t files <"$BUILD/libraries.txt"
((${#files[@]} >= 6)) || complain "only these libraries are linked: ${files[*]}"
zcat sluice/usr/share/doc/sluice/THIRD-PARTY.gz >third-party
for package in $(dpkg-query --search "${files[@]}" | cut -d: -f1 | sort -u) libcli11-dev; do
  grep -qF " $package " "$SOURCE/NOTICE" || complain "NOTICE does not name $package"
  for text in "${texts[@]}"; do
    grep -qF "($package)" "$text" || complain "$text has no licence of $package"
  done
  [[ $package == libcli11-dev ]] ||
    dpkg-deb --field "$packages/libsluice-dev_$version-1_$architecture.deb" Depends | grep -qF " $package," ||
    complain "libsluice-dev does not depend on $package"
done

# The command's client of servers: not in the library, and not in the static command.
grep -qF ' libhiredis-dev ' "$SOURCE/NOTICE" || complain "NOTICE does not name libhiredis-dev"
grep -qF '(libhiredis-dev)' third-party || complain "third-party has no licence of libhiredis-dev"
for name in libsluice-dev redis-sluice; do
  [[ -d $name ]] || continue
  if dpkg-deb --field "$packages/${name}_$version-1_$architecture.deb" Depends | grep -F hiredis; then
    complain "$name depends on hiredis"
  fi
done
dpkg-deb --field "$packages/sluice_$version-1_$architecture.deb" Depends | grep -qF libhiredis ||
  complain "the command does not depend on hiredis"

# The table of case folding is Unicode's data.
for text in source/NOTICE source/packaging/copyright source/bindings/python/THIRD_PARTY_NOTICES.txt \
  sluice/usr/share/doc/sluice/copyright "${texts[@]}"; do
  for words in 'UNICODE LICENSE V3' CaseFolding.txt; do
    grep -qF "$words" "$text" || complain "$text does not name $words"
  done
done

# --- The module: it needs libc alone, and shows only its entry
if [[ -n $with_module ]]; then
  same "what the module needs" "libc6" "$(dpkg-deb --field "$packages/redis-sluice_$version-1_$architecture.deb" Depends |
    tr ',' '\n' | sed -E 's/^ *//; s/ .*//' | sort -u | xargs)"
  same "what the module shows" "RedisModule_OnLoad" \
    "$(nm --dynamic --defined-only redis-sluice/usr/lib/redis/modules/sluice.so | awk '{ print $3 }')"
  [[ -x redis-sluice/usr/lib/redis/modules/sluice.so ]] || complain "the module is not executable: Redis 7 does not load it"
  [[ -s redis-sluice/usr/share/doc/redis-sluice/copyright ]] || complain "redis-sluice has no copyright"
  zgrep -q '(libstdc++-[0-9]*-dev)' redis-sluice/usr/share/doc/redis-sluice/THIRD-PARTY.gz ||
    complain "redis-sluice does not name the licence of libstdc++"
fi

# --- The static command, in a root that has nothing else: no libc, no /proc, no /dev
try_static() {
  local file
  for file in sluice.1 LICENSE completions/_sluice; do
    [[ -s static/$file ]] || complain "the archive of the static command has no $file"
  done
  grep -q 'GNU Lesser General Public License' static/THIRD-PARTY ||
    complain "the static command does not name the licence of libc"
  same "libraries that the static command needs" '' \
    "$(readelf --program-headers --dynamic --wide static/sluice | grep -E 'INTERP|NEEDED|RUNPATH')"
  same "a filter on servers" "sluice dedup: error: this is the static command, which has no client of servers: use the \
command of the Debian package, or build it" "$(static/sluice dedup --filter redis://127.0.0.1:1/x 2>&1 </dev/null)"
  alone=()
  if [[ $EUID -eq 0 ]]; then alone=(chroot empty)
  elif unshare --map-root-user true 2>/dev/null; then alone=(unshare --map-root-user chroot empty)
  else echo "The static command is not tried in an empty root: that needs root or user namespaces."; fi
  if ((${#alone[@]} > 0)); then
    mkdir empty
    cp static/sluice empty/sluice
    same "--version" "$("$SLUICE" --version)" "$("${alone[@]}" /sluice --version)"
    "$SLUICE" generate clicks --records 20k --seed 3 --output clicks 2>/dev/null
    keys=(--json --key "/user,/ad" --stats none)
    "$SLUICE" dedup "${keys[@]}" clicks >expected
    # "... this processor has avx2, portable"
    sets=$({ SLUICE_SIMD=none "$SLUICE" --version 2>&1 || true; } | sed -nE 's/.*this processor has //p')
    [[ $sets == *portable ]] || complain "the instruction sets cannot be read from '$sets'"
    for set in ${sets//,/}; do
      for hash in '' --untrusted-keys; do
        # shellcheck disable=SC2086  # no word, or one
        SLUICE_SIMD=$set "${alone[@]}" /sluice dedup "${keys[@]}" $hash <clicks | cmp - expected ||
          complain "the static command differs with $set $hash"
      done
    done
    same "a state" $'1\n2\n3\n4' "$(
      printf '1\n2\n1\n' | "${alone[@]}" /sluice dedup --state /seen.sluice --stats none
      printf '2\n3\n4\n' | "${alone[@]}" /sluice dedup --state /seen.sluice --stats none)"
    cp clicks empty/
    "${alone[@]}" /sluice dedup "${keys[@]}" --threads 2 --memory 16MiB --state /clicks.sluice --output /once /clicks 2>/dev/null ||
      complain "the static command fails with --memory and --threads"
    cmp empty/once expected || complain "the static command differs with --memory and --threads"
  fi
}
[[ ! -d static ]] || try_static

# --- The same bytes again: made twice, the second time with other settings of the machine
(umask 077 && TZ=Asia/Tokyo LC_ALL=C "$SOURCE/packaging/make" "$BUILD" "$scratch/again" deb source) 2>/dev/null
same "made twice" "$(grep -v linux "$packages/SHA256SUMS")" "$(grep -v linux again/SHA256SUMS)"
source/packaging/make "$BUILD" "$scratch/from-archive" source
same "a source archive of the source archive" "$(grep "sluice-$version.tar" "$packages/SHA256SUMS")" \
  "$(cat from-archive/SHA256SUMS)"

if [[ ${SLUICE_COUNTS:-full} == full ]]; then
  if command -v lintian >/dev/null; then
    same "lintian" '' "$(lintian --allow-root --fail-on none "$packages"/*.deb 2>&1)"
  else
    echo "lintian is not installed: Debian packages are not checked by it."
  fi
fi
finish
