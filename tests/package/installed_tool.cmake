# The tool where it is installed: it runs, and what belongs beside it is there.
cmake_minimum_required(VERSION 3.25)
foreach(file IN ITEMS share/man/man1/stela.1 share/bash-completion/completions/stela
    share/zsh/vendor-completions/_stela share/fish/vendor_completions.d/stela.fish
    lib/systemd/system/stela-outbox@.service lib/sysusers.d/stela.conf
    share/stela/stela-alerts.yml share/stela/stela-dashboard.json)
  if(NOT EXISTS "${PREFIX}/${file}")
    message(FATAL_ERROR "${file} isn't installed")
  endif()
endforeach()
file(READ "${PREFIX}/share/man/man1/stela.1" manual)
if(NOT manual MATCHES "^\\.TH STELA 1" OR NOT manual MATCHES "stela outbox work")
  message(FATAL_ERROR "the manual page isn't one")
endif()
file(READ "${PREFIX}/lib/systemd/system/stela-outbox@.service" unit)
if(NOT unit MATCHES "ExecStart=${PREFIX}/bin/stela " AND NOT unit MATCHES "ExecStart=[^ ]*/bin/stela ")
  message(FATAL_ERROR "the unit doesn't start the tool: ${unit}")
endif()

file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")
function(run wanted)
  execute_process(COMMAND "${PREFIX}/bin/stela" ${ARGN} WORKING_DIRECTORY "${WORK}"
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE problem)
  if(NOT result EQUAL 0 OR NOT output MATCHES "${wanted}")
    message(FATAL_ERROR "stela ${ARGN} ended with ${result}, not '${wanted}': ${output}${problem}")
  endif()
endfunction()
run("stela ${VERSION}" version)
run("outbox work" --help)
run("was made" migrate --db shop.db)
run("partitions" outbox enable --db shop.db --partitions 4)
run("\"sequence\":1" events append --db shop.db --stream order-1 --type order.placed --publish
  --data "{}")
run("\"pending\":1" outbox status --db shop.db --json)
run("1 event checked, no problem" verify --db shop.db)
