# `cpack --preset deb` makes Debian packages: the libraries, the development files and the tool.
# Meant for a shared build with the prefix /usr, as configured by the preset `package`.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "The Stela authors <stela@packages.invalid>" CACHE STRING
  "Who maintains the packages")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_DIRECTORY "${CMAKE_BINARY_DIR}/packages")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(CPACK_COMPONENTS_ALL runtime dev)
if(STELA_WITH_TOOL)
  list(APPEND CPACK_COMPONENTS_ALL tool)
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS OFF)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# The tool's libraries are built in the same run, so no installed package has them.
get_property(modules GLOBAL PROPERTY STELA_MODULES)
set(library_dirs "")
foreach(module IN LISTS modules)
  get_target_property(folder stela_${module} BINARY_DIR)
  list(APPEND library_dirs "${folder}")
endforeach()
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${library_dirs})

set(runtime libstela${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set(this_version "${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME ${runtime})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
# For the time zones of timers.
set(CPACK_DEBIAN_RUNTIME_PACKAGE_DEPENDS tzdata)
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION "${PROJECT_DESCRIPTION} (libraries)
Aggregates record events; a repository stores them in SQLite and, in the same
transaction, enqueues those that are to be published; a relay takes them to
NATS JetStream, each once and in order.")
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libstela-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "${runtime} (= ${this_version}), libcereal-dev (>= 1.3)")
set(CPACK_DEBIAN_DEV_DESCRIPTION "${PROJECT_DESCRIPTION} (development files)
Headers, CMake package and pkg-config files.")

set(CPACK_DEBIAN_TOOL_PACKAGE_NAME stela)
set(CPACK_DEBIAN_TOOL_PACKAGE_SECTION database)
set(CPACK_DEBIAN_TOOL_PACKAGE_DEPENDS "${runtime} (= ${this_version})")
set(CPACK_DEBIAN_TOOL_DESCRIPTION "${PROJECT_DESCRIPTION} (command line)
The command stela: the relay as a service, and what is needed to look at a
store and its outbox, to repair, back up and move them.")

set(changelog "${CMAKE_CURRENT_BINARY_DIR}/changelog.Debian")
string(TIMESTAMP today "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE "${changelog}" "stela (${this_version}) unstable; urgency=medium\n\n"
  "  * See CHANGELOG.md of Stela ${PROJECT_VERSION}.\n\n"
  " -- ${CPACK_PACKAGE_CONTACT}  ${today}\n")
find_program(GZIP_PROGRAM gzip)
if(GZIP_PROGRAM)
  execute_process(COMMAND "${GZIP_PROGRAM}" -9 -n -f "${changelog}")
endif()

foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER ${component} upper)
  install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" RENAME copyright COMPONENT ${component}
    DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}/doc/${CPACK_DEBIAN_${upper}_PACKAGE_NAME}")
  install(FILES "${changelog}.gz" COMPONENT ${component} OPTIONAL
    DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}/doc/${CPACK_DEBIAN_${upper}_PACKAGE_NAME}")
endforeach()

include(CPack)
