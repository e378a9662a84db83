# The SQL of a module, written as SQL.
#
# stela_embed_sql(target namespace directory [AFTER directory...])
#   <directory>/*.sql                 -> a type for each named statement, in the generated header
#                                        "<namespace>_sql/<file>.hpp", stela::<namespace>::sql; each is
#                                        compiled against the tables of the modules AFTER which this one
#                                        comes, and its own, if it has any
#   <directory>/sqlite/migrations/    -> one entry of stela::<namespace>::sql::migrations each, in order,
#     NNNN_<what>.sql                    in "<namespace>_sql.hpp"
#   <directory>/postgres/migrations/  -> the same of migrations_on_postgres, if there are any
function(stela_embed_sql target namespace directory)
  cmake_parse_arguments(arg "" "" "AFTER" ${ARGN})
  set(output "${CMAKE_CURRENT_BINARY_DIR}/sql")
  set(on_postgres)
  if(NOT namespace STREQUAL "sqlite")
    set(on_postgres "${directory}/postgres/migrations")
  endif()
  if(IS_DIRECTORY "${directory}/sqlite/migrations")
    stela_embed_migrations(${target} ${namespace} "${directory}/sqlite/migrations" ${on_postgres})
  endif()

  file(GLOB statements CONFIGURE_DEPENDS "${directory}/*.sql")
  set(schema)
  set(schema_files)
  foreach(module IN LISTS arg_AFTER ITEMS "${directory}")
    if(NOT IS_DIRECTORY "${module}/sqlite/migrations")
      continue()
    endif()
    list(APPEND schema --schema "${module}/sqlite/migrations")
    file(GLOB files CONFIGURE_DEPENDS "${module}/sqlite/migrations/*.sql")
    list(APPEND schema_files ${files})
  endforeach()
  foreach(file IN LISTS statements)
    cmake_path(GET file STEM subject)
    set(header "${output}/${namespace}_sql/${subject}.hpp")
    add_custom_command(OUTPUT "${header}"
      COMMAND stela_sql_compiler ${namespace} "${output}/${namespace}_sql" ${schema} "${file}"
      DEPENDS stela_sql_compiler "${file}" ${schema_files}
      COMMENT "Compiling ${subject}.sql of ${namespace}" VERBATIM)
    target_sources(${target} PRIVATE "${header}")
  endforeach()
  target_include_directories(${target} PRIVATE "${output}")
endfunction()

# stela_embed_postgres_statements(target namespace directory): the same types of the named statements
# in <directory>/*.sql, which only PostgreSQL runs, in "<namespace>_sql/<file>.hpp".
function(stela_embed_postgres_statements target namespace directory)
  set(output "${CMAKE_CURRENT_BINARY_DIR}/sql")
  file(GLOB statements CONFIGURE_DEPENDS "${directory}/*.sql")
  foreach(file IN LISTS statements)
    cmake_path(GET file STEM subject)
    set(header "${output}/${namespace}_sql/${subject}.hpp")
    add_custom_command(OUTPUT "${header}"
      COMMAND stela_sql_compiler ${namespace} "${output}/${namespace}_sql" --postgres "${file}"
      DEPENDS stela_sql_compiler "${file}"
      COMMENT "Compiling ${subject}.sql of ${namespace}" VERBATIM)
    target_sources(${target} PRIVATE "${header}")
  endforeach()
  target_include_directories(${target} PRIVATE "${output}")
endfunction()

# stela_embed_migrations(target namespace folder [folder for PostgreSQL]): the part of stela_embed_sql
# that embeds migrations, for those of another engine.
function(stela_embed_migrations target namespace folder)
  set(output "${CMAKE_CURRENT_BINARY_DIR}/sql")
  file(GLOB migrations CONFIGURE_DEPENDS "${folder}/*.sql")
  set(on_postgres)
  if(ARGC GREATER 3)
    file(GLOB on_postgres CONFIGURE_DEPENDS "${ARGV3}/*.sql")
  endif()
  set(header "${output}/${namespace}_sql.hpp")
  add_custom_command(OUTPUT "${header}"
    COMMAND ${CMAKE_COMMAND} "-DOUTPUT=${header}" "-DNAMESPACE=${namespace}"
            "-DMIGRATIONS=${migrations}" "-DON_POSTGRES=${on_postgres}" -P "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/EmbedSql.cmake"
    DEPENDS ${migrations} ${on_postgres} "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/EmbedSql.cmake"
    COMMENT "Embedding the SQL of ${namespace}" VERBATIM)
  target_sources(${target} PRIVATE "${header}")
  target_include_directories(${target} PRIVATE "${output}")
endfunction()
