# stela_module(name SOURCES ...): the library stela_<name>, its alias stela::<name>, its export
# header <stela/<name>/export.hpp>, and the settings that all modules share.
include(GenerateExportHeader)
include(GNUInstallDirs)

function(stela_compile_options target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  if(STELA_WARNINGS)
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
      # GCC 12 reports overlap where strings are joined; see its bug 105651. At -O3 it reports
      # uninitialised members in the cleanup of temporaries; -O1 keeps that warning.
      target_compile_options(${target} PRIVATE
        -Wno-restrict $<$<CONFIG:Release>:-Wno-maybe-uninitialized>)
    endif()
  endif()
  if(STELA_SANITIZE)
    # Sanitizers' code makes GCC report uninitialised values in Boost's headers.
    target_compile_options(${target} PRIVATE
      -fsanitize=${STELA_SANITIZE} -fno-omit-frame-pointer -Wno-maybe-uninitialized)
    target_link_options(${target} PUBLIC -fsanitize=${STELA_SANITIZE})
  endif()
endfunction()

# stela_compile_as_one(target): with STELA_UNITY, compiles several of its files as one. CMake's own
# unity files contain the path of the checkout, so other checkouts don't find them in the compiler's
# cache; these don't contain it. As with CMake's, a file with SKIP_UNITY_BUILD_INCLUSION or options
# of its own is compiled by itself, and files with the same UNITY_GROUP are compiled together.
function(stela_compile_as_one target)
  if(STELA_UNITY)
    # Deferred until the target has all of its sources.
    cmake_language(EVAL CODE "cmake_language(DEFER CALL stela_join_sources ${target})")
    # GCC treats an included file as a header, where a class shouldn't hold local types. Clang warns
    # if a name hides one from another file.
    target_compile_options(${target} PRIVATE
      $<IF:$<CXX_COMPILER_ID:GNU>,-Wno-subobject-linkage,-Wno-shadow>)
  endif()
endfunction()

function(stela_join_sources target)
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${target}_unity")
  get_target_property(sources ${target} SOURCES)
  set(kept "")
  set(groups "")
  set(count 0)
  foreach(source IN LISTS sources)
    set(is_alone FALSE)
    foreach(property SKIP_UNITY_BUILD_INCLUSION COMPILE_DEFINITIONS COMPILE_OPTIONS)
      get_source_file_property(value "${source}" ${property})
      if(value)
        set(is_alone TRUE)
      endif()
    endforeach()
    if(is_alone OR NOT source MATCHES "\\.cpp$")
      list(APPEND kept "${source}")
      continue()
    endif()
    get_source_file_property(group "${source}" UNITY_GROUP)
    if(NOT group)
      math(EXPR group "${count} / ${STELA_UNITY_FILES}")
      math(EXPR count "${count} + 1")
    endif()
    list(APPEND groups ${group})
    get_source_file_property(is_generated "${source}" GENERATED)
    if(is_generated)
      # It stays a source, so that it is generated before it is included.
      set_source_files_properties("${source}" PROPERTIES HEADER_FILE_ONLY ON)
      list(APPEND kept "${source}")
    endif()
    cmake_path(ABSOLUTE_PATH source NORMALIZE)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${folder}" OUTPUT_VARIABLE relative)
    string(APPEND text_${group} "#include \"${relative}\"\n")
  endforeach()
  list(REMOVE_DUPLICATES groups)
  foreach(group IN LISTS groups)
    file(CONFIGURE OUTPUT "${folder}/${group}.cpp" CONTENT "${text_${group}}" @ONLY)
    list(APPEND kept "${folder}/${group}.cpp")
  endforeach()
  set_property(TARGET ${target} PROPERTY SOURCES ${kept})
endfunction()

function(stela_module name)
  cmake_parse_arguments(arg "" "" "SOURCES" ${ARGN})
  set(target stela_${name})
  string(TOUPPER ${target} macro)
  add_library(${target} ${arg_SOURCES})
  add_library(stela::${name} ALIAS ${target})
  stela_compile_options(${target})
  set_target_properties(${target} PROPERTIES
    EXPORT_NAME ${name}
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    POSITION_INDEPENDENT_CODE ON
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  if(NOT STELA_SANITIZE)
    # Finds a missing export here instead of at the library's users.
    target_link_options(${target} PRIVATE LINKER:--no-undefined)
  endif()
  set(generated "${CMAKE_CURRENT_BINARY_DIR}/include")
  generate_export_header(${target} BASE_NAME ${macro}
    EXPORT_FILE_NAME "${generated}/stela/${name}/export.hpp")
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    if(STELA_CHECK_EXPORTS)
      # Exports as a shared library would, so that a test can link one of these objects.
      target_compile_definitions(${target} PUBLIC
        "$<BUILD_INTERFACE:${macro}_EXPORT=__attribute__((visibility(\"default\")))>")
    else()
      target_compile_definitions(${target} PUBLIC ${macro}_STATIC_DEFINE)
    endif()
  endif()
  target_include_directories(${target}
    PUBLIC "$<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>"
           "$<BUILD_INTERFACE:${generated}>"
           "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>"
    PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/src")
  if(STELA_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE
      <algorithm> <array> <atomic> <cereal/cereal.hpp> <charconv> <chrono> <condition_variable>
      <filesystem> <functional> <map> <memory> <mutex> <optional> <span> <stop_token> <string>
      <string_view> <thread> <unordered_map> <variant> <vector>)
  endif()
  stela_compile_as_one(${target})
  set_target_properties(${target} PROPERTIES
    STELA_HEADERS "${CMAKE_CURRENT_SOURCE_DIR}/include/;${generated}/")
  set_property(GLOBAL APPEND PROPERTY STELA_MODULES ${name})
endfunction()
