# stela_embed_sql(target namespace directory): every *.sql below `directory` becomes a constant of a
# generated header, so that SQL is written as SQL and found by its file's name.
#   queries/<verb>.sql         -> stela::<namespace>::sql::<verb>
#   migrations/NNNN_<what>.sql -> one entry of stela::<namespace>::sql::migrations, in order
function(stela_embed_sql target namespace directory)
  file(GLOB queries CONFIGURE_DEPENDS "${directory}/queries/*.sql")
  file(GLOB migrations CONFIGURE_DEPENDS "${directory}/migrations/*.sql")
  set(header "${CMAKE_CURRENT_BINARY_DIR}/sql/${namespace}_sql.hpp")
  add_custom_command(OUTPUT "${header}"
    COMMAND ${CMAKE_COMMAND} "-DOUTPUT=${header}" "-DNAMESPACE=${namespace}"
            "-DQUERIES=${queries}" "-DMIGRATIONS=${migrations}"
            -P "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/EmbedSql.cmake"
    DEPENDS ${queries} ${migrations} "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/EmbedSql.cmake"
    COMMENT "Embedding the SQL of ${namespace}" VERBATIM)
  target_sources(${target} PRIVATE "${header}")
  target_include_directories(${target} PRIVATE "${CMAKE_CURRENT_BINARY_DIR}/sql")
endfunction()
