# Makes a copy of a core with a fault in it: copies what the fault can be in, patches it, and puts it into
# a namespace of its own inside that of the core, where it finds the rest.
# Variables: mutant, patch (none leaves it as it is), core (the files), folder (where they are in the
# tree), space (their namespace), copy (the folder), program (patch).
set(target "${copy}/${folder}")
file(REMOVE_RECURSE "${copy}")
file(COPY ${core} DESTINATION "${target}")

if(patch)
  execute_process(COMMAND "${program}" --strip=1 --fuzz=0 --batch --forward --reject-file=-
    INPUT_FILE "${patch}" WORKING_DIRECTORY "${copy}"
    RESULT_VARIABLE failed OUTPUT_VARIABLE told ERROR_VARIABLE told)
  if(failed)
    message(FATAL_ERROR "${told}The mutant ${mutant} doesn't apply to ${folder} any more. Make its "
      "change by hand, write `git diff ${folder}` to ${patch}, and undo it.")
  endif()
endif()

file(GLOB files "${target}/*.hpp" "${target}/*.cpp")
foreach(file IN LISTS files)
  file(READ "${file}" text)
  string(REPLACE "namespace ${space} {" "namespace ${space}::${mutant} {" moved "${text}")
  if(moved STREQUAL text)
    message(FATAL_ERROR "${file} isn't in the namespace ${space}")
  endif()
  # The class is private to the product's Consumer; in the copy it stands by itself.
  string(REPLACE "Consumer::Worker" "Worker" moved "${moved}")
  file(WRITE "${file}" "${moved}")
endforeach()
