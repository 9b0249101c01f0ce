# Third-party code: Debian packages only (README lists them); each stays in few source files.
find_package(fmt REQUIRED CONFIG)
find_package(tl-expected REQUIRED CONFIG)
find_package(nlohmann_json REQUIRED CONFIG)
find_package(simdjson REQUIRED CONFIG)
find_package(CLI11 REQUIRED CONFIG)
find_package(tinyxml2 REQUIRED CONFIG)
find_package(ZLIB REQUIRED)
# Static: no other machine needs it to run what was built here.
set(Boost_USE_STATIC_LIBS ON)
find_package(Boost 1.81 REQUIRED COMPONENTS context)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
# Header-only without a package file: found here so that a missing one is said at configure time.
find_path(PCG_INCLUDE_DIR pcg_random.hpp REQUIRED)
