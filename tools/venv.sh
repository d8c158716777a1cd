# shellcheck shell=bash
# venv FOLDER REQUIREMENTS: makes a virtual environment with these packages from PyPI, unless it is
# there with exactly these. Exits with 77 if PyPI cannot be reached.
venv() {
  local folder=$1 requirements=$2
  cmp -s "$requirements" "$folder/requirements" && return
  rm -rf "$folder"
  "${PYTHON:-python3}" -m venv "$folder"
  from_pypi "$folder" --requirement "$requirements"
  cp "$requirements" "$folder/requirements"
}

# from_pypi FOLDER ARG...: pip install ARG... in this environment.
from_pypi() {
  local folder=$1 log
  shift
  log=$folder/pip.log
  "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --retries 1 --timeout 20 "$@" \
    >"$log" 2>&1 && return
  if grep -qiE 'connection|timed out|name resolution|proxy' "$log"; then
    echo "PyPI cannot be reached, so the Python package is neither built nor tested"
    exit 77
  fi
  cat "$log" >&2
  exit 1
}
