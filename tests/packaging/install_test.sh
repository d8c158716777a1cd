#!/usr/bin/env bash
# An installed copy serves outsiders: every header compiles alone, examples/embed and the C++ of the
# README build with CMake and with pkg-config, and what they print is right.
# shellcheck source=tests/packaging/lib.sh
. "$(dirname "$0")/lib.sh"
prefix=$scratch/prefix
cmake --install "$BUILD" --prefix "$prefix" >/dev/null

for file in bin/sluice share/man/man1/sluice.1 share/bash-completion/completions/sluice \
  share/zsh/site-functions/_sluice share/fish/vendor_completions.d/sluice.fish \
  share/doc/sluice/LICENSE include/sluice/sluice.hpp; do
  [[ -f $prefix/$file ]] || complain "$file is not installed"
done
same "the installed command tells its version" "$("$SLUICE" --version)" \
  "$("$prefix/bin/sluice" --version)"
if grep -rqF "$SOURCE" "$prefix"/lib*/cmake "$prefix"/lib*/pkgconfig; then
  complain "the installed copy needs the tree it was built from"
fi

# Headers, each by itself and without the tree.
cd "$scratch"
find "$prefix/include" -name '*.hpp' -printf '%P\n' | sort >headers
[[ $(wc -l <headers) -gt 20 ]] || complain "too few headers: $(cat headers)"
if grep -E '_test|targets|/stream/|/lab/|/cluster/|json' headers; then complain "an internal header is installed"; fi
xargs -P "$(nproc)" -I '{}' sh -c \
  "echo '#include \"{}\"' | \"$CXX\" -std=c++20 -Wall -Wextra -Werror -fsyntax-only \
    -I'$prefix/include' -x c++ -" <headers || complain "a header does not compile alone"

# Outsiders: our warnings are not theirs, so they may have their own.
cmake -G Ninja -S "$SOURCE/examples/embed" -B embed -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_CXX_COMPILER="$CXX" >cmake.log || { cat cmake.log; complain "cmake fails"; }
cmake --build embed --verbose >build.log || { cat build.log; complain "the build fails"; }
if grep -qE -- '-Werror|-fsanitize' build.log; then complain "our flags leak to users"; fi
same "embed, built by CMake" "$(cat "$SOURCE/examples/embed/expected.txt")" "$(embed/embed)"
same "window, built by CMake" "$(cat "$SOURCE/examples/embed/expected-window.txt")" "$(embed/window)"
same "consumer, built by CMake" "$(cat "$SOURCE/examples/embed/expected-consumer.txt")" "$(embed/consumer .)"

PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name sluice.pc)")
export PKG_CONFIG_PATH
for linking in '' --static; do
  # shellcheck disable=SC2046,SC2086  # several words
  "$CXX" -std=c++20 "$SOURCE/examples/embed/main.cpp" -o embed-pc \
    $(pkg-config --cflags --libs $linking sluice)
  same "embed, built by pkg-config $linking" "$(cat "$SOURCE/examples/embed/expected.txt")" \
    "$(LD_LIBRARY_PATH=$(dirname "$PKG_CONFIG_PATH") ./embed-pc)"
done

fenced cpp 1 "$SOURCE/README.md" >readme.cpp
fenced text 1 "$SOURCE/README.md" >readme.txt
# shellcheck disable=SC2046  # several words
"$CXX" -std=c++20 -Wall -Wextra -Werror readme.cpp -o readme \
  $(pkg-config --cflags --libs sluice)
same "the C++ of the README" "$(cat readme.txt)" \
  "$(LD_LIBRARY_PATH=$(dirname "$PKG_CONFIG_PATH") ./readme)"
finish
