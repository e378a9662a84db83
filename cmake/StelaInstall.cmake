# stela_install_modules(): install rules, exported targets and a pkg-config file for each module.
# The dependencies of a module are read from its linked targets; the table below says how users find
# them.
include(CMakePackageConfigHelpers)

# The pkg-config module of a static libpq names its dependencies. A shared libpq needs only its
# folder, unless that is the system's: Debian's module names static libraries that Debian doesn't
# package.
set(stela_libpq_flags "-lpq")
if(PostgreSQL_LIBRARY_RELEASE MATCHES "\\.a$")
  set(stela_libpq_flags "libpq")
  set(PostgreSQL_LIBRARY_DIRS "")
endif()
foreach(folder IN LISTS PostgreSQL_LIBRARY_DIRS)
  if(NOT folder IN_LIST CMAKE_C_IMPLICIT_LINK_DIRECTORIES AND
     NOT folder IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
    string(PREPEND stela_libpq_flags "-L${folder} ")
  endif()
endforeach()

# linked target | how CMake finds it | the pkg-config module, or its compile flags if it has none.
set(stela_packages
  "cereal::cereal|cereal 1.3 CONFIG|"
  "Threads::Threads|Threads|-pthread"
  "simdjson::simdjson|simdjson 3.0 CONFIG|simdjson"
  "Sodium::sodium|Sodium 1.0.18|libsodium"
  "date::date-tz|date 3.0 CONFIG|-ldate-tz"
  "SQLite::SQLite3|SQLite3 3.38|sqlite3"
  "PostgreSQL::PostgreSQL|PostgreSQL 15|${stela_libpq_flags}"
  "NATS::nats|NATS 3.4|libnats"
  "tomlplusplus::tomlplusplus|tomlplusplus 3.3 CONFIG|tomlplusplus"
  "ncursesw||ncursesw"
  "tinfo||")

# Splits the linked targets of `module` into ${module}_modules, ${module}_find (calls) and
# ${module}_requires (pkg-config modules). Dependencies of the library alone go to the same names
# with _private.
function(stela_split_links module)
  # Clears the caller's values.
  set(modules "")
  get_target_property(links stela_${module} INTERFACE_LINK_LIBRARIES)
  foreach(link IN LISTS links)
    set(kind "")
    if(link MATCHES "^\\$<LINK_ONLY:(.*)>$")
      set(link "${CMAKE_MATCH_1}")
      set(kind "_private")
    endif()
    if(link MATCHES "^\\$<BUILD_INTERFACE:" OR link STREQUAL "")
      continue()
    elseif(link MATCHES "^stela::(.+)$")
      list(APPEND modules ${CMAKE_MATCH_1})
      list(APPEND requires${kind} stela-${CMAKE_MATCH_1})
      continue()
    endif()
    set(row ${stela_packages})
    list(FILTER row INCLUDE REGEX "^${link}\\|")
    if(NOT row MATCHES "^[^|]+\\|([^|]*)\\|(.*)$")
      message(FATAL_ERROR "stela_${module} links ${link}: say in cmake/StelaInstall.cmake how users "
        "find it, or link it as $<BUILD_INTERFACE:${link}> if it is headers alone and private")
    endif()
    set(pkg_config "${CMAKE_MATCH_2}")
    if(CMAKE_MATCH_1)
      list(APPEND find${kind} "find_dependency(${CMAKE_MATCH_1})")
    endif()
    if(pkg_config MATCHES "^-")
      list(APPEND libs${kind} "${pkg_config}")
    elseif(pkg_config)
      list(APPEND requires${kind} "${pkg_config}")
    endif()
  endforeach()
  foreach(result modules find find_private requires requires_private libs libs_private)
    set(${module}_${result} "${${result}}" PARENT_SCOPE)
  endforeach()
endfunction()

function(stela_install_module module)
  set(target stela_${module})
  install(TARGETS ${target} EXPORT stela-${module}
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT runtime NAMELINK_COMPONENT dev
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT dev
    RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT runtime)
  if(BUILD_SHARED_LIBS AND NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr")
    # Outside of the loader's default folders, a module finds its dependencies beside it.
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN")
  endif()
  get_target_property(headers ${target} STELA_HEADERS)
  install(DIRECTORY ${headers} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT dev
    FILES_MATCHING PATTERN "*.hpp")
  install(EXPORT stela-${module} NAMESPACE stela:: FILE stela-${module}-targets.cmake
    DESTINATION "${stela_cmake_dir}" COMPONENT dev)
endfunction()

# A .pc file that finds its prefix from its own location.
function(stela_install_pkg_config module)
  file(RELATIVE_PATH to_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
  string(REGEX REPLACE "/$" "" to_prefix "${to_prefix}")
  get_target_property(defines stela_${module} INTERFACE_COMPILE_DEFINITIONS)
  list(FILTER defines EXCLUDE REGEX "^\\$<BUILD_INTERFACE:|NOTFOUND$")
  if(defines)
    list(TRANSFORM defines PREPEND " -D")
    string(JOIN "" cflags ${defines})
  endif()
  string(JOIN ", " requires ${${module}_requires})
  string(JOIN ", " requires_private ${${module}_requires_private})
  string(JOIN " " libs ${${module}_libs})
  string(JOIN " " libs_private ${${module}_libs_private})
  get_target_property(type stela_${module} TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    # A static library doesn't record its dependencies, so its users must link them too.
    string(JOIN ", " requires ${${module}_requires} ${${module}_requires_private})
    string(APPEND libs " ${libs_private}")
    set(requires_private "")
    set(libs_private "")
  endif()
  set(file "${CMAKE_CURRENT_BINARY_DIR}/package/stela-${module}.pc")
  configure_file("${PROJECT_SOURCE_DIR}/cmake/stela-module.pc.in" "${file}" @ONLY)
  install(FILES "${file}" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT dev)
endfunction()

# The part of the config file that finds each module's dependencies, in order of dependency.
function(stela_describe_modules result)
  set(text "")
  foreach(module IN LISTS ARGN)
    get_target_property(type stela_${module} TYPE)
    set(find ${${module}_find})
    if(type STREQUAL "STATIC_LIBRARY")
      list(APPEND find ${${module}_find_private})
    endif()
    string(APPEND text "set(stela_${module}_modules \"${${module}_modules}\")\n"
      "macro(stela_find_what_${module}_needs)\n")
    foreach(call IN LISTS find)
      string(APPEND text "  ${call}\n")
    endforeach()
    string(APPEND text "endmacro()\n")
  endforeach()
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

function(stela_install_modules)
  set(stela_cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/stela")
  get_property(modules GLOBAL PROPERTY STELA_MODULES)
  foreach(module IN LISTS modules)
    stela_split_links(${module})
    stela_install_module(${module})
    stela_install_pkg_config(${module})
  endforeach()

  if(TARGET stela_program AND BUILD_SHARED_LIBS AND NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr")
    file(RELATIVE_PATH to_libraries "/${CMAKE_INSTALL_BINDIR}" "/${CMAKE_INSTALL_LIBDIR}")
    set_target_properties(stela_program PROPERTIES INSTALL_RPATH "$ORIGIN/${to_libraries}")
  endif()

  stela_describe_modules(what_modules_need ${modules})
  set(config "${CMAKE_CURRENT_BINARY_DIR}/package/stela-config.cmake")
  configure_package_config_file(cmake/stela-config.cmake.in "${config}"
    INSTALL_DESTINATION "${stela_cmake_dir}")
  # While the major version is 0, a minor version may break compatibility; from 1.0 on only a major
  # one may.
  set(compatible SameMajorVersion)
  if(PROJECT_VERSION_MAJOR EQUAL 0)
    set(compatible SameMinorVersion)
  endif()
  set(version "${CMAKE_CURRENT_BINARY_DIR}/package/stela-config-version.cmake")
  write_basic_package_version_file("${version}" COMPATIBILITY ${compatible})
  install(FILES "${config}" "${version}" cmake/FindNATS.cmake cmake/FindSodium.cmake
    DESTINATION "${stela_cmake_dir}" COMPONENT dev)
endfunction()
