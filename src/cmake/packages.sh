#!/bin/bash
# usage: packages.sh JOB...
# Installs what the jobs (build, demo, test, bench, peers, jax, run-time, docs, format) need from the
# distribution, where it is missing. Costs one dpkg query when nothing is. KILN_SKIP_PACKAGES=1 skips
# the question. Without the optional packages, which may be missing, some tests are skipped.
set -eu

# Debian 12's names. Ubuntu 24.04 has the same names for all of them (untested).
build="cmake ninja-build g++ llvm-19-dev lld-19 zlib1g-dev libzstd-dev libffi-dev libedit-dev
  libxml2-dev libncurses-dev libcli11-dev nlohmann-json3-dev libeigen3-dev"
docs="doxygen graphviz"
format="clang-format-14 git"
declare -A packages=(
  [build]="$build"
  [demo]="$build graphviz"
  [test]="$build $docs $format llvm-19-tools libgtest-dev libmpfr-dev locales
    python3 python3-numpy python3-pip mypy abigail-tools binutils pkg-config"
  [bench]="$build libopenblas-dev libdnnl-dev"
  [peers]="$build python3 python3-venv binutils"
  [jax]="$build python3 python3-venv binutils"
  [run-time]="cmake ninja-build libeigen3-dev g++-aarch64-linux-gnu"
  [docs]="$docs"
  [format]="$format python3"
)
# Ubuntu's browsers are snaps.
declare -A optional=(
  ["debian 12 test"]="chromium-headless-shell"
)

[ -z "${KILN_SKIP_PACKAGES:-}" ] || exit 0
system=unknown
if [ -r /etc/os-release ]; then
  system=$(. /etc/os-release && echo "${ID:-unknown} ${VERSION_ID:-}")
fi
wanted="" extra=""
for job in "$@"; do
  if [ -z "${packages[$job]:-}" ]; then
    echo "packages.sh: unknown job '$job' (known: ${!packages[*]})" >&2
    exit 1
  fi
  wanted="$wanted ${packages[$job]}"
  extra="$extra ${optional["$system $job"]:-}"
done
wanted=$(printf '%s\n' $wanted | sort -u)
extra=$(printf '%s\n' $extra | sort -u)

missing=$wanted
if command -v dpkg-query >/dev/null; then
  # Packages of several architectures print one line each: a name is there if any line says so.
  there=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $wanted $extra 2>/dev/null |
    sed -n 's/^installed //p' | sort -u) || true
  missing=$(comm -23 <(echo "$wanted") <(echo "$there"))
  extra=$(comm -23 <(echo "$extra") <(echo "$there"))
fi

[ -n "$missing$extra" ] || exit 0

sudo=""
[ "$(id -u)" -eq 0 ] || sudo=sudo
install() {
  $sudo apt-get -q update &&
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "$@"
}

if [ -n "$missing" ]; then
  case "$system" in
    "debian 12" | "ubuntu 24.04") ;;
    *)
      cat >&2 <<END
Kiln installs its build dependencies by itself on Debian 12 and Ubuntu 24.04; this system is
'$system'. What '$*' needs, by Debian's names:
$(echo "$missing" | sed 's/^/  /')
Install these (LLVM must be 19.1, with its static libraries and CMake files), then run make again
with KILN_SKIP_PACKAGES=1.
END
      exit 1
      ;;
  esac
  if [ -n "$sudo" ] && ! command -v sudo >/dev/null; then
    echo "Missing packages, and neither root nor sudo to install them. As root, run:" >&2
    echo "  apt-get install --no-install-recommends" $missing >&2
    exit 1
  fi
  echo "Installing:" $missing
  install $missing
fi

# Nobody is asked for a password because of these, and each is tried once in a tree.
[ -z "$sudo" ] || sudo="sudo -n"
tried=build/optional_packages
for package in $extra; do
  ! grep -qsx "$package" $tried || continue
  [ ! -d build ] || echo "$package" >>$tried
  echo "Installing, if possible: $package"
  install "$package" || echo "Tests that need $package are skipped."
done
