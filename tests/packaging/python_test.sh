#!/usr/bin/env bash
# The Python package: the wheel is built, has all it needs, and is used as its documentation says, in a
# virtual environment where there is nothing but NumPy, and in one with pandas, Arrow and Polars.
# shellcheck source=tests/packaging/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$SOURCE"
# shellcheck source=tools/venv.sh
. tools/venv.sh
package=$SOURCE/bindings/python
export SLUICE

# 77: PyPI cannot be reached.
tools/wheel "$scratch/wheel" "$BUILD/libsluice.a" >"$scratch/log" || {
  status=$?
  cat "$scratch/log"
  exit $status
}
wheel=$(echo "$scratch"/wheel/*.whl)
[[ $wheel == *-manylinux_* ]] || complain "$wheel is not for every Linux"

# What others wrote is named, and nothing else of the system is needed.
cp "$wheel" "$scratch/wheel.zip"
"${PYTHON:-python3}" -m zipfile -e "$wheel" "$scratch/unpacked"
for file in "$scratch"/unpacked/sluice.libs/*; do
  name=$(basename "$file")
  grep -q "^${name%%-*} " "$scratch"/unpacked/*.dist-info/licenses/bindings/python/THIRD_PARTY_NOTICES.txt ||
    complain "$name is in the wheel, and THIRD_PARTY_NOTICES.txt does not name it"
done
while read -r name; do
  compgen -G "$scratch/unpacked/sluice.libs/$name-*" >/dev/null ||
    complain "THIRD_PARTY_NOTICES.txt names $name, and it is not in the wheel"
done < <(sed -nE 's/^(lib[a-z]+) \(.*/\1/p' "$package/THIRD_PARTY_NOTICES.txt")
[[ -f $(echo "$scratch"/unpacked/*.dist-info/licenses/LICENSE) ]] || complain "the wheel has no licence"
[[ -f $scratch/unpacked/sluice/py.typed ]] || complain "the wheel has no py.typed"

# A fresh environment.
cd "$scratch"
"${PYTHON:-python3}" -m venv fresh
from_pypi fresh "$wheel"
same "packages that it needs" "numpy sluice" \
  "$(fresh/bin/python -m pip list --format freeze 2>/dev/null | sed 's/==.*//' | grep -vxE 'pip|setuptools|wheel' | xargs)"
fresh/bin/python -c '
import sluice
seen = sluice.Seen(window="10m", fpr=1e-6)
assert seen.first("a") and not seen.first("a")
assert seen.observe(["a", b"b", 3]).tolist() == [False, True, True]
' || complain "the wheel does not work with NumPy alone"

# An environment with what people use beside it.
tests=$SOURCE/build/python/tests
(cd "$SOURCE" && venv "$tests" "$package/requirements-test.txt") || exit $?
"$tests/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall "$wheel"
"$tests/bin/python" -m pytest -q -p no:cacheprovider "$package/tests" || complain "pytest fails"
"$tests/bin/python" -m mypy --strict --config-file "$SOURCE/pyproject.toml" --cache-dir "$scratch/mypy" \
  "$package/sluice" "$package/tests" "$SOURCE"/examples/python/*.py "$SOURCE/bench/python_bench.py" ||
  complain "mypy fails"

# The sessions of the documents, and the examples.
for document in docs/python.md README.md bindings/python/README.md; do
  (mkdir -p sessions && cd sessions && "$tests/bin/python" "$package/tests/sessions.py" "$SOURCE/$document") ||
    complain "a Python session of $document does something else"
done
ran=0
for example in "$SOURCE"/examples/python/*.py; do
  ran=$((ran + 1))
  mkdir "example$ran"
  output=$(cd "example$ran" && "$tests/bin/python" "$example" 2>&1) || complain "$example fails: $output"
  same "$example" "$(cat "${example%.py}.txt")" "$output"
done
((ran >= 4)) || complain "there are too few examples"
"$tests/bin/python" "$SOURCE/bench/python_bench.py" --keys 20000 --repeats 1 >bench.txt ||
  complain "the benchmark fails"
finish
