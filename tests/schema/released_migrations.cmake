# cmake -D SOURCE=… -P released_migrations.cmake: fails if a migration that was released isn't what it
# was, byte for byte. A release adds its new ones to released_migrations.sha256, which has the form
# of sha256sum. A database knows its migrations again by their text: one that changed is refused.
cmake_minimum_required(VERSION 3.25)
file(STRINGS "${SOURCE}/tests/schema/released_migrations.sha256" lines)
set(released "")
foreach(line IN LISTS lines)
  if(NOT line MATCHES "^([0-9a-f]+)  (.+)$")
    message(SEND_ERROR "not a line of sha256sum: ${line}")
    continue()
  endif()
  set(expected "${CMAKE_MATCH_1}")
  set(file "${CMAKE_MATCH_2}")
  list(APPEND released "${file}")
  if(NOT EXISTS "${SOURCE}/${file}")
    message(SEND_ERROR "${file} was released, and is missing")
    continue()
  endif()
  file(SHA256 "${SOURCE}/${file}" actual)
  if(NOT actual STREQUAL expected)
    message(SEND_ERROR "${file} was released and has changed; put it back, and write a migration "
                       "with the next number")
  endif()
endforeach()

file(GLOB_RECURSE first RELATIVE "${SOURCE}" "${SOURCE}/*/sql/*/migrations/0001_*.sql"
     "${SOURCE}/*/*/sql/*/migrations/0001_*.sql")
foreach(file IN LISTS first)
  if(NOT file MATCHES "^build/" AND NOT file IN_LIST released)
    message(SEND_ERROR "${file} isn't in released_migrations.sha256")
  endif()
endforeach()
