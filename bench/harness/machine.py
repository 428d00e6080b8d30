# SPDX-License-Identifier: Apache-2.0
"""What was measured on: the machine, and the version and source of each peer."""
import os
import pathlib
import platform
import re
import shutil
import subprocess

HEADERS = pathlib.Path("/usr/include")


def output(*command):
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return result.stdout.strip()


def package(*names):
    """`name version` of the first of these packages that is installed."""
    for name in names:
        version = output("dpkg-query", "-W", "-f", "${Version}", name)
        if version:
            return f"{distribution()}'s {name} {version}"
    return "not from a package"


def distribution():
    try:
        return platform.freedesktop_os_release().get("NAME", "Linux").split()[0]
    except OSError:
        return "Linux"


def describe():
    """Pairs of what and which."""
    model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    virtual = "virtual machine, " if "hypervisor" in pathlib.Path("/proc/cpuinfo").read_text() else ""
    release = {}
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        pass
    return [
        ("Machine", f"{virtual}{os.cpu_count()} cores of {model[1] if model else platform.machine()}, "
                    f"{memory:.0f} GiB"),
        ("System", f"{release.get('PRETTY_NAME', 'Linux')}, kernel {platform.release()}"),
    ]


def compiler(program):
    first = output(program, "--version").splitlines()
    return first[0] if first else f"{program}: not installed"


def boost_asio(include):
    """Of Boost's headers in this folder, which a package was unpacked to where it is not `HEADERS`."""
    header = include / "boost" / "asio" / "version.hpp"
    found = re.search(r"define BOOST_ASIO_VERSION (\d+)", header.read_text()) if header.exists() else None
    if not found:
        return "not installed"
    number = int(found[1])
    version = f"asio {number // 100000}.{number // 100 % 1000}.{number % 100}"
    if include == HEADERS:
        return f"{version} of {package('libboost1.83-dev', 'libboost1.81-dev')}"
    name, release, _ = include.parents[1].name.split("_")
    return f"{version} of Debian sid's {name} {release}"


def locked_crate(lock, name):
    found = re.search(rf'name = "{name}"\nversion = "([^"]+)"', pathlib.Path(lock).read_text())
    return f"{name} {found[1]}" if found else name


def commit(root):
    if not shutil.which("git"):
        return ""
    return output("git", "-C", str(root), "describe", "--always", "--dirty")
