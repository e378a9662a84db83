# Finds nats.c: NATS::nats, NATS_VERSION. Uses pkg-config and the header, because nats.c's own CMake
# config names a static library that Debian 12 doesn't package.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(PC_NATS QUIET libnats)
endif()
find_path(NATS_INCLUDE_DIR nats/nats.h HINTS ${PC_NATS_INCLUDE_DIRS})
find_library(NATS_LIBRARY NAMES nats nats_static natsd nats_staticd HINTS ${PC_NATS_LIBRARY_DIRS})

if(NATS_INCLUDE_DIR AND EXISTS "${NATS_INCLUDE_DIR}/nats/version.h")
  file(STRINGS "${NATS_INCLUDE_DIR}/nats/version.h" line REGEX "#define NATS_VERSION_STRING ")
  string(REGEX REPLACE ".*\"([0-9.]+).*" "\\1" NATS_VERSION "${line}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NATS
  REQUIRED_VARS NATS_LIBRARY NATS_INCLUDE_DIR VERSION_VAR NATS_VERSION)

if(NATS_FOUND AND NOT TARGET NATS::nats)
  add_library(NATS::nats UNKNOWN IMPORTED)
  set_target_properties(NATS::nats PROPERTIES
    IMPORTED_LOCATION "${NATS_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${NATS_INCLUDE_DIR}")
  if(NATS_LIBRARY MATCHES "nats_static")
    # Here nats.c's own config is right, and lists the other libraries to link.
    find_package(cnats CONFIG QUIET)
    set_property(TARGET NATS::nats PROPERTY
      INTERFACE_LINK_LIBRARIES $<TARGET_NAME_IF_EXISTS:cnats::nats_static>)
  endif()
endif()
mark_as_advanced(NATS_INCLUDE_DIR NATS_LIBRARY)
