# SPDX-License-Identifier: Apache-2.0
"""Builds what is measured, with the flags that the measuring needs, and says what it built."""
import functools
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

from harness import machine

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUTPUT = ROOT / "build" / "bench"
PEERS = OUTPUT / "peers"
LEAST_CARGO = (1, 85)

# callgrind reads the fourth version of the debug format only.
FLAGS = "-O3 -DNDEBUG -g -gdwarf-4"
COMPILERS = {"clang": ("clang-19", "clang++-19"), "gcc": ("gcc", "g++")}


class BuildError(Exception):
    """Why a program is not there; a sentence to print."""


def progress(text):
    print(text, file=sys.stderr, flush=True)


def run(command, **options):
    """Runs quietly; what matters of what it printed is in the error when it fails."""
    result = subprocess.run(
        [str(word) for word in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **options,
    )
    if result.returncode != 0:
        lines = result.stdout.splitlines()
        signs = re.compile("error:|Error|undefined reference")
        telling = [line for line in lines if signs.search(line)][:5] or lines[-15:]
        raise BuildError("\n".join([f"{command[0]} failed:", *telling]))
    return result.stdout


class NativePrograms:
    """The targets of bench/CMakeLists.txt, built by one compiler, of COMPILERS unless others are given; these may be
    several words, with semicolons between them."""

    def __init__(self, name="clang", compilers=None, more_flags=""):
        self.folder = OUTPUT / name
        self.c, self.cxx = compilers or COMPILERS[name]
        self.flags = f"{FLAGS} {more_flags}".rstrip()

    def configure(self):
        for compiler in (self.c, self.cxx):
            if shutil.which(compiler.split(";")[0]) is None:
                raise BuildError(f"there is no {compiler}")
        progress(f"configuring {self.folder.name} with {self.cxx}")
        run(
            ["cmake", "-S", ROOT, "-B", self.folder, "-G", "Ninja"]
            + [f"-DCMAKE_C_COMPILER={self.c}", f"-DCMAKE_CXX_COMPILER={self.cxx}"]
            + ["-DCMAKE_BUILD_TYPE=Release"]
            + [f"-DCMAKE_{language}_FLAGS_RELEASE={self.flags}" for language in ("C", "CXX")]
            + ["-DPLUMB_BUILD_BENCHMARKS=ON", f"-DPLUMB_BENCH_BOOST={boost()}"]
            + [f"-DPLUMB_{part}=OFF" for part in
               ("BUILD_TESTS", "BUILD_TOOLS", "BUILD_EXAMPLES", "INSTALL")]
        )

    def build(self, target):
        progress(f"building {target} with {self.cxx}")
        known = run(["cmake", "--build", self.folder, "--target", "help"])
        if not re.search(rf"^{re.escape(target)}: ", known, re.MULTILINE):
            raise BuildError(f"{target} is not part of the build (its library is not installed)")
        run(["cmake", "--build", self.folder, "--target", target])

    def path(self, *parts):
        return self.folder.joinpath("bench", *parts)


def find_cargo():
    """The first cargo that is new enough, or None."""
    places = [shutil.which("cargo"), "/usr/bin/cargo"]
    places += sorted(map(str, pathlib.Path("/usr/lib").glob("rust-*/bin/cargo")), reverse=True)
    for place in places:
        if place is None or not os.access(place, os.X_OK):
            continue
        text = subprocess.run([place, "--version"], capture_output=True, text=True).stdout
        version = re.match(r"cargo (\d+)\.(\d+)", text)
        if version and tuple(map(int, version.groups())) >= LEAST_CARGO:
            return place
    return None


def cargo_environment(cargo):
    """A cargo beside its rustc uses that one, and not an older one that comes first in PATH."""
    folder = str(pathlib.Path(cargo).parent)
    return {**os.environ, "PATH": folder + os.pathsep + os.environ["PATH"]}


def build_rust(source):
    """Builds the crate in `source`, whose binary has the name of the suite."""
    cargo = find_cargo()
    if cargo is None:
        progress(f"there is no cargo {LEAST_CARGO[0]}.{LEAST_CARGO[1]} or newer: installing one")
        run([ROOT / "tools" / "install_deps", "rust"])
        cargo = find_cargo()
    if cargo is None:
        raise BuildError("there is no cargo that is new enough")
    progress(f"building {source.relative_to(ROOT)} with {cargo}")
    folder = OUTPUT / "rust" / source.name
    run(
        [cargo, "build", "--release", "--locked", "--target-dir", folder],
        cwd=source,
        env=cargo_environment(cargo),
    )
    return folder / "release"


def find_go():
    """The first go, or None."""
    for place in (shutil.which("go"), "/usr/local/go/bin/go", "/usr/bin/go"):
        if place is not None and os.access(place, os.X_OK):
            return place
    return None


def build_go(source):
    """Builds the module in `source`, which needs no others. @return the program"""
    if find_go() is None:
        progress("there is no go: installing one")
        run([ROOT / "tools" / "install_deps", "go"])
    go = find_go()
    if go is None:
        raise BuildError("there is no go")
    progress(f"building {source.relative_to(ROOT)} with {go}")
    program = OUTPUT / "go" / source.parent.name
    run([go, "build", "-o", program, "."], cwd=source)
    return program


def python():
    """The distribution's interpreter, which is built with profile-guided optimisation."""
    return "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable


def python_with(requirements):
    """An interpreter that has the packages of this file."""
    folder = OUTPUT / "python"
    interpreter = folder / "bin" / "python"
    if not interpreter.exists():
        progress("making a Python environment")
        run([python(), "-m", "venv", "--clear", folder])
    wanted = requirements.read_text().split()
    installed = run([interpreter, "-m", "pip", "--disable-pip-version-check", "freeze"]).split()
    if not set(wanted) <= set(installed):
        progress(f"installing {' '.join(wanted)}")
        run([interpreter, "-m", "pip", "--disable-pip-version-check", "install", "-r",
             requirements])
    return interpreter


def clang_22(requirements):
    """The C and C++ compilers of PyPI's ziglang, with libc++, as NativePrograms takes them."""
    # They compile their libraries once, and keep them here.
    os.environ.setdefault("ZIG_GLOBAL_CACHE_DIR", str(OUTPUT / "zig"))
    interpreter = python_with(requirements)
    return tuple(f"{interpreter};-m;ziglang;{language}" for language in ("cc", "c++"))


@functools.cache
def boost():
    """The folder of Boost's headers: the newest that Debian has, fetched once; without it, the distribution's."""
    fetched = next(PEERS.glob("libboost*/usr/include"), None)
    if fetched is not None:
        return fetched
    try:
        return fetch_boost()
    except (BuildError, OSError) as error:
        progress(f"no newer Boost ({error}); the distribution's: {machine.boost_asio(machine.HEADERS)}")
        return machine.HEADERS


DEBIAN_KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
# Read after the machine's own, whose proxies are used and whose hooks are not run.
APT = """\
#clear APT::Update;
APT::Sandbox::User "root";
Acquire::Retries "1";
Acquire::http::Timeout "20";
Acquire::https::Timeout "20";
Dir::Etc::SourceList "{folder}/sid.list";
Dir::Etc::SourceParts "/dev/null";
Dir::State::Lists "{folder}/lists";
Dir::State::Status "{folder}/status";
Dir::Cache "{folder}/cache";
"""


def fetch_boost():
    """Unpacks the newest libboost1.NN-dev of Debian's sid, from the mirror that apt is set up with here. apt has
    a state of its own for it, and the machine's stays as it is. @return the folder of the headers"""
    progress("fetching the newest Boost that Debian has")
    release = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    used = run(["apt-get", "update", "--print-uris"])
    mirrors = set(re.findall(rf"'(\S+)/dists/{release}/InRelease'", used))
    PEERS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=PEERS, prefix="apt-") as name:
        folder = pathlib.Path(name)
        config = folder / "apt.conf"
        config.write_text(APT.format(folder=folder))
        for each in ("lists", "cache", "boost"):
            (folder / each).mkdir()
        (folder / "status").touch()
        (folder / "sid.list").write_text("".join(
            f"deb [signed-by={DEBIAN_KEYS} target=Packages] {mirror} sid main\n"
            for mirror in sorted(mirrors)))
        # Its status doesn't tell whether one of them has it.
        subprocess.run(["apt-get", "-c", config, "update"], stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        known = run(["apt-cache", "-c", config, "search", "--names-only", r"^libboost1\.[0-9]+-dev$"])
        numbers = list(map(int, re.findall(r"^libboost1\.(\d+)-dev ", known, re.MULTILINE)))
        if not numbers:
            raise BuildError("no mirror that apt uses here gives Debian's sid")
        run(["apt-get", "-c", config, "download", f"libboost1.{max(numbers)}-dev/sid"], cwd=folder)
        package = next(folder.glob("*.deb"))
        run(["dpkg", "-x", package, folder / "boost"])
        return (folder / "boost").rename(PEERS / package.stem) / "usr" / "include"
