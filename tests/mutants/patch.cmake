# Makes a copy of the relay's core with a fault in it: copies what the fault can be in, patches it, and
# puts it into a namespace of its own inside that of the core, where it finds the rest.
# Variables: mutant, patch, core (the files), copy (the folder), program (patch).
set(folder "${copy}/outbox/src/relay")
file(REMOVE_RECURSE "${copy}")
file(COPY ${core} DESTINATION "${folder}")

execute_process(COMMAND "${program}" --strip=1 --fuzz=0 --batch --forward --reject-file=-
  INPUT_FILE "${patch}" WORKING_DIRECTORY "${copy}"
  RESULT_VARIABLE failed OUTPUT_VARIABLE told ERROR_VARIABLE told)
if(failed)
  message(FATAL_ERROR "${told}The mutant ${mutant} doesn't apply to the relay's core any more. Make its "
    "change by hand, write `git diff outbox/src/relay` to ${patch}, and undo it.")
endif()

file(GLOB files "${folder}/*.hpp" "${folder}/*.cpp")
foreach(file IN LISTS files)
  file(READ "${file}" text)
  string(REPLACE "namespace stela::relay {" "namespace stela::relay::${mutant} {" moved "${text}")
  if(moved STREQUAL text)
    message(FATAL_ERROR "${file} isn't in the namespace stela::relay")
  endif()
  file(WRITE "${file}" "${moved}")
endforeach()
