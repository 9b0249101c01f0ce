"""Builds the wheel `zeroproof` (PEP 517): the program, its data, the recorder and the subject.

The program is $ZP_WHEEL_BINARY, or what preset `wheel` built. The same input gives the same bytes.
"""

import base64
import hashlib
import os
import platform
import re
import subprocess
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DATA = "zeroproof/share/zeroproof"  # where the program looks: ../share/zeroproof beside its folder
OLDEST_GLIBC = (2, 17)  # no older tag is given to a program that needs less
# Every manylinux host has them; other libraries are linked statically. The static libgcc would
# need glibc 2.35.
HOST_LIBRARIES = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"}
LINKED_PACKAGES = ("libfmt-dev", "libsimdjson-dev", "libtinyxml2-dev", "libxxhash-dev",
                   "zlib1g-dev", "libboost-context1.81-dev", "libcli11-dev", "nlohmann-json3-dev",
                   "libexpected-dev", "libpcg-cpp-dev", "libstdc++6")
ENTRY_POINTS = """[console_scripts]
zeroproof = zeroproof.__main__:main
zeroproof-recorder = zeroproof_recorder.__main__:main
zeroproof-subject = zeroproof_subject.__main__:main

[pytest11]
zeroproof = zeroproof_subject.pytest_plugin
"""
METADATA = """Metadata-Version: 2.1
Name: zeroproof
Version: {version}
Summary: Finds hook orders that break ZeRO training; records, replays and diagnoses PyTorch jobs
License: MIT
Keywords: pytorch,deepspeed,zero,fsdp,ddp,autograd,hooks,debugging,testing
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Requires-Python: >=3.10
Provides-Extra: torch
Requires-Dist: torch>=2.4; extra == "torch"
Description-Content-Type: text/markdown

{description}"""


class WheelError(Exception):
    """The wheel cannot be built."""


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def version():
    """That of the installed headers."""
    numbers = re.findall(r"#define ZEROPROOF_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)",
                         read("include/zeroproof/version.h"))
    return ".".join(numbers)


def program_path():
    """The program that goes into the wheel."""
    path = os.environ.get("ZP_WHEEL_BINARY", os.path.join(ROOT, "build/wheel/bin/zeroproof"))
    if not os.path.isfile(path):
        raise WheelError(f"{path}: no such program; run ./zp wheel, or set ZP_WHEEL_BINARY")
    return path


def platform_tag(program):
    """manylinux_2_XX_x86_64 by the symbols of glibc that the program needs."""
    def readelf(option):
        return subprocess.run(["readelf", option, "--wide", program], check=True, text=True,
                              capture_output=True, env={**os.environ, "LC_ALL": "C"}).stdout

    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", readelf("-d")))
    foreign = sorted(needed - HOST_LIBRARIES)
    if foreign:
        raise WheelError(f"{program}: needs {', '.join(foreign)}, which other machines lack; "
                         "build preset wheel")
    versions = re.findall(r"Name: GLIBC_(\d+)\.(\d+)", readelf("-V"))
    newest = max([OLDEST_GLIBC, *((int(major), int(minor)) for major, minor in versions)])
    return f"manylinux_{newest[0]}_{newest[1]}_{platform.machine()}"


def files_below(folder, ends):
    """Paths from the root of the files below `folder` whose names end so, sorted."""
    found = [os.path.relpath(os.path.join(place, name), ROOT)
             for place, _, names in os.walk(os.path.join(ROOT, folder))
             for name in names if name.endswith(ends)]
    return sorted(found)


def contents(program):
    """Path in the wheel -> path of its source, for everything but the metadata."""
    files = {"zeroproof/bin/zeroproof": program}
    for path in files_below("packaging/zeroproof", ".py"):
        files[path.removeprefix("packaging/")] = path
    for path in files_below("recorder/zeroproof_recorder", (".py", ".json")):
        files[path.removeprefix("recorder/")] = path
    for path in files_below("subject/zeroproof_subject", (".py", ".json")):
        files[path.removeprefix("subject/")] = path
        files[f"{DATA}/{path}"] = path  # for the Python that `hunt --python` names
    for path in files_below("tests/traces", (".gz", ".json", ".md")):
        files[f"{DATA}/{path.removeprefix('tests/')}"] = path
    for path in ("environment.sh", "environments.sh", "tests/versions.txt"):
        files[f"{DATA}/recorder/{path}"] = f"recorder/{path}"
    return files


def licences():
    """Path below the metadata -> path of the licence of what is inside."""
    found = {"licenses/LICENSE": "LICENSE"}
    for package in LINKED_PACKAGES:
        path = f"/usr/share/doc/{package}/copyright"
        if os.path.exists(path):
            found[f"licenses/{package}.txt"] = path
    return found


class Wheel:
    """A zip archive that notes each file's hash."""

    def __init__(self, path):
        self.archive = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self.record = []

    def add(self, name, data, is_program=False):
        info = zipfile.ZipInfo(name, date_time=(2020, 1, 1, 0, 0, 0))
        info.external_attr = (0o100755 if is_program else 0o100644) << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        self.archive.writestr(info, data, compresslevel=9)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(data)}")

    def close(self, folder):
        name = f"{folder}/RECORD"
        self.add(name, "\n".join([*self.record, f"{name},,", ""]).encode())
        self.archive.close()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """PEP 517; the name of the wheel."""
    program = program_path()
    tag = f"py3-none-{platform_tag(program)}"
    name = f"zeroproof-{version()}"
    info = f"{name}.dist-info"
    wheel = Wheel(os.path.join(wheel_directory, f"{name}-{tag}.whl"))
    for target, source in contents(program).items():
        with open(os.path.join(ROOT, source), "rb") as file:
            wheel.add(target, file.read(), target.endswith((".sh", "/bin/zeroproof")))
    for target, source in licences().items():
        with open(os.path.join(ROOT, source), "rb") as file:
            wheel.add(f"{info}/{target}", file.read())
    metadata = METADATA.format(version=version(), description=read("README.md"))
    wheel.add(f"{info}/METADATA", metadata.encode())
    wheel.add(f"{info}/WHEEL", (f"Wheel-Version: 1.0\nGenerator: zeroproof {version()}\n"
                                f"Root-Is-Purelib: false\nTag: {tag}\n").encode())
    wheel.add(f"{info}/entry_points.txt", ENTRY_POINTS.encode())
    wheel.close(info)
    return f"{name}-{tag}.whl"


def build_sdist(sdist_directory, config_settings=None):
    """PEP 517."""
    raise WheelError("there is no source distribution: the repository is the source")
