# Runs the benchmark program on tiny counts, in a folder of its own: every group of figures reports,
# every line parses and has its fields. Nothing is asked of the numbers.
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")
execute_process(COMMAND "${PROGRAM}" --tiny --disk "${FOLDER}" --json "${FOLDER}/figures.jsonl"
  RESULT_VARIABLE result OUTPUT_VARIABLE table ERROR_VARIABLE problems)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "it ended with ${result}: ${problems}")
endif()

file(STRINGS "${FOLDER}/figures.jsonl" lines ENCODING UTF-8)
foreach(line IN LISTS lines)
  string(JSON name GET "${line}" figure)
  foreach(field stela raw ratio ratio_min ratio_max goal mode place unit)
    string(JSON value ERROR_VARIABLE problem GET "${line}" ${field})
    if(problem)
      message(FATAL_ERROR "${name}: ${problem}")
    endif()
  endforeach()
  string(FIND "${table}" "| ${name} " found)
  if(found EQUAL -1)
    message(FATAL_ERROR "${name} isn't in the table")
  endif()
  list(APPEND names "${name}")
endforeach()

set(all_wanted
    yardstick.1.full.disk append.1.full.disk.save append.3.full.disk.store
    append.1.relaxed.disk.save append.3.relaxed.tmpfs.store append.100.binary.relaxed.disk.save
    append.100.json.relaxed.tmpfs.save schema.1.relaxed.disk.as_they_come
    group_commit.16.full.disk.bare group_commit.64.full.disk.saves lone_caller.full.disk.queue
    load.100.binary.together load.100.json.scattered read_all.json read_all.binary
    growth.append.1.relaxed.disk memory.read_all relay.pass.100.full.disk
    relay.pass.500.relaxed.disk relay.growth.500.full.disk pointer.1.full.disk
    pointer.1.relaxed.tmpfs producer.1.relaxed.disk wake.same_process wake.other_process
    idle.same_process idle.other_process replay.memory.binary replay.memory.json
    replay.table.binary replay.decode_ahead replay.filtered live.commit_to_projected replay.growth
    replay.growth.memory decision.two_views.relaxed.disk decision.append_tags.0.relaxed.disk
    decision.append_tags.1.relaxed.disk decision.append_tags.2.relaxed.tmpfs
    decision.append_tags.5.relaxed.disk decision.append_tags.beside.relaxed.tmpfs
    decision.conflicts.hot.1.full.disk decision.conflicts.hot.64.full.disk
    decision.conflicts.cold.8.full.disk decision.conflicts.cold.64.full.disk
    decision.read_by_tag.100 timer.set timer.fire timer.due_to_fired timer.waiting.append
    timer.waiting.idle)
if(TOOL)
  list(APPEND all_wanted tool.start tool.outbox_status tool.append.full.disk tool.append.relaxed.tmpfs
    tool.dashboard million.sqlite.check)
endif()
if(TOOL AND WITH_POSTGRES)
  list(APPEND all_wanted million.postgres.check)
endif()
if(WITH_POSTGRES)
  list(APPEND all_wanted postgres.append.1 postgres.append.100 postgres.group_commit.64
    postgres.group_commit.4x16 postgres.line.append.1 postgres.line.group_commit.64
    postgres.read_stream.100 postgres.read_all postgres.scheme.none postgres.scheme.counter_row
    postgres.relay.dead_rows postgres.growth.append.1 postgres.replay postgres.inline.append.1
    speed.append.1.100us speed.append.100.100us speed.group_commit.64.100us
    speed.group_commit.4x16.100us speed.stores.8x1.100us speed.line.append.1.100us
    speed.line.group_commit.64.100us speed.append.64.beside_runner.100us
    speed.async.postgres.100us speed.async.sqlite speed.decision.two_views.1.1ms
    speed.decision.two_views.64.1ms speed.decision.64_to_8.1ms rivals.message_db.100us
    rivals.pyeventsourcing.100us rivals.commanded.100us rivals.marten_quick.100us)
endif()
if(WITH_NATS AND WITH_POSTGRES)
  list(APPEND all_wanted postgres.relay.backlog postgres.delivery.p50
    speed.delivery.p50.100us shop.reservations.8 shop.reservations.64 shop.projected.64
    shop.handled.64)
endif()
if(WITH_NATS)
  list(APPEND all_wanted relay.backlog.none relay.backlog.none.publishing relay.backlog.stream
    relay.backlog.stream.fence delivery.commit_to_acknowledged.p50
    delivery.commit_to_acknowledged.p99 delivery.sustained.64 consumer.inbox.100
    consumer.line.5ms consumer.line.20ms consumer.line.100ms consumer.one_parked.100
    relay.line.0ms relay.line.100ms relay.line.after_cut relay.neighbours.longest_wait memory.relay)
endif()
foreach(wanted IN LISTS all_wanted)
  if(NOT wanted IN_LIST names)
    message(FATAL_ERROR "no figure ${wanted}")
  endif()
endforeach()

execute_process(COMMAND "${PROGRAM}" --figure RESULT_VARIABLE result ERROR_QUIET OUTPUT_QUIET)
if(NOT result EQUAL 2)
  message(FATAL_ERROR "a missing value ended with ${result}, not 2")
endif()
file(REMOVE_RECURSE "${FOLDER}")
