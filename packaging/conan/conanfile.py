"""Stela for Conan 2, from the sources that this recipe lies in: conan create packaging/conan."""

import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir
from conan.tools.gnu import PkgConfigDeps

required_conan_version = ">=2.0"


class StelaConan(ConanFile):
    name = "stela"
    description = "Event sourcing with an integrated transactional outbox"
    license = "MIT"
    topics = ("event-sourcing", "outbox", "cqrs", "nats", "sqlite", "postgresql")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {
        "shared": [True, False],
        "fPIC": [True, False],
        "with_nats": [True, False],
        "with_postgres": [True, False],
    }
    default_options = {
        "shared": False,
        "fPIC": True,
        "with_nats": True,
        "with_postgres": True,
        # Of Boost only headers are used, and time zones are the system's.
        "boost/*:header_only": True,
        "date/*:use_system_tz_db": True,
    }

    def _root(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def set_version(self):
        text = load(self, os.path.join(self._root(), "CMakeLists.txt"))
        self.version = re.search(r"project\(stela VERSION ([0-9.]+)", text).group(1)

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "framework/*", "eventstore/*",
                        "outbox/*", "projections/*"):
            copy(self, pattern, src=self._root(), dst=self.export_sources_folder)

    def configure(self):
        if self.options.shared:
            self.options.rm_safe("fPIC")

    def validate(self):
        check_min_cppstd(self, 20)

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        self.requires("cereal/[>=1.3 <2]", transitive_headers=True)
        self.requires("boost/[>=1.74 <2]")
        self.requires("date/[>=3.0 <4]")
        self.requires("libsodium/[>=1.0.18 <2]")
        self.requires("simdjson/[>=3.0 <4]")
        self.requires("sqlite3/[>=3.38 <4]")
        self.requires("xxhash/[>=0.8 <1]")
        if self.options.with_nats:
            self.requires("cnats/[>=3.4 <4]")
        if self.options.with_postgres:
            # CMake takes the major version that it asks for, and no other.
            self.requires("libpq/[>=15 <16]")

    def build_requirements(self):
        self.tool_requires("cmake/[>=3.25]")

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["STELA_WITH_NATS"] = bool(self.options.with_nats)
        toolchain.cache_variables["STELA_WITH_POSTGRES"] = bool(self.options.with_postgres)
        toolchain.cache_variables["STELA_WITH_TOOL"] = False
        toolchain.cache_variables["STELA_BUILD_TESTS"] = False
        toolchain.cache_variables["STELA_BUILD_SAMPLES"] = False
        toolchain.cache_variables["STELA_BUILD_BENCHMARKS"] = False
        toolchain.cache_variables["STELA_INSTALL"] = True
        toolchain.generate()
        CMakeDeps(self).generate()
        PkgConfigDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", src=self.source_folder,
             dst=os.path.join(self.package_folder, "licenses"))
        CMake(self).install()
        # What Debian's packages have there.
        rmdir(self, os.path.join(self.package_folder, "share"))

    def package_info(self):
        # Stela's own config knows its components and what each of them needs.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("lib", "cmake", "stela")]
