// States of a database, an outbox, its partitions, workers and messages.
#include "nats/jetstream.hpp"
#include "support/zoo/zoo.hpp"

#include <stela/outbox/operations.hpp>

#include <chrono>
#include <csignal>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

namespace stela::test::zoo {
namespace {

using namespace std::chrono_literals;

const Codes nothing{"well"};
constexpr const char* small_payloads = "max_payload: 4000";

// ---- Actions of operators and applications

void with_outbox(Habitat& habitat) {
  habitat.enable_outbox();
  habitat.broker();
}

void with_history(Habitat& habitat) {
  with_outbox(habitat);
  habitat.append(1);
  habitat.publish();
}

void start_a_worker(Habitat& habitat) {
  habitat.start_worker("w2");
}

void start_the_broker(Habitat& habitat) {
  habitat.broker().start_again();
}

std::function<void(Habitat&)> change_stream(std::int64_t most_messages) {
  return [=](Habitat& habitat) {
    JetStream{habitat.broker().url()}.update_stream(
        "SHOP", [=](jsStreamConfig& config) { config.MaxMsgs = most_messages; });
  };
}

// ---- The database and its outbox

void lose_database(Habitat& habitat) {
  if (is_on_postgres()) return habitat.own_server().crash();
  std::filesystem::rename(habitat.path(), habitat.path() + ".saved");
  std::ofstream{habitat.path()} << std::string(8192, '?');
}

void give_database_back(Habitat& habitat) {
  if (is_on_postgres()) return habitat.own_server().start_again();
  std::filesystem::rename(habitat.path() + ".saved", habitat.path());
}

void hide_a_table(Habitat& habitat) {
  habitat.sql("ALTER TABLE stela_acknowledged RENAME TO hidden");
}

void show_the_table(Habitat& habitat) {
  habitat.sql("ALTER TABLE hidden RENAME TO stela_acknowledged");
}

void lock_a_table(Habitat& habitat) {
  habitat.keeps.push_back(std::make_shared<std::jthread>([&habitat] {
    try {
      habitat.sql("BEGIN; LOCK TABLE inbox_readers IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(60)");
    } catch (const std::exception&) {
      // `end_who_locks` ended its session.
    }
  }));
}

void end_who_locks(Habitat& habitat) {
  habitat.sql(
      "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND "
      "relation = 'inbox_readers'::regclass");
}

void leave_unattended(Habitat& habitat) {
  with_outbox(habitat);
  habitat.append(3);
}

void lose_broker(Habitat& habitat) {
  with_outbox(habitat);
  habitat.start_worker("w1");
  habitat.append(1);
  habitat.expect_published();
  habitat.broker().kill();
}

void lose_broker_and_append(Habitat& habitat) {
  lose_broker(habitat);
  habitat.append(3);
}

void be_late(Habitat& habitat) {
  with_outbox(habitat);
  habitat.append_at(ago(2min));
  habitat.note_worker();
}

void be_late_and_unattended(Habitat& habitat) {
  with_outbox(habitat);
  habitat.append_at(ago(2min));
}

void park(Habitat& habitat) {
  habitat.broker(small_payloads);
  with_outbox(habitat);
  habitat.append(1, 5000);
  habitat.publish();
  habitat.note_worker();
}

// ---- Workers

void miss_the_stream(Habitat& habitat) {
  habitat.settings["STELA_NATS_ENSURE_STREAM"] = "false";
  with_outbox(habitat);
  habitat.start_worker("w1");
  habitat.append(1);
}

void make_the_stream(Habitat& habitat) {
  JetStream{habitat.broker().url()}.make_stream("SHOP", "shop.>");
}

void freeze_worker(Habitat& habitat) {
  with_outbox(habitat);
  Running& worker = habitat.start_worker("w1");
  const auto holds_lock = [&] {
    const Ran checked = habitat.run({"check", "--set", "store.busy_timeout=1ms"});
    return checked.out.find("lock") != std::string::npos;
  };
  // Stops it outside a write, which would block all writers.
  for (worker.signal(SIGSTOP); holds_lock(); worker.signal(SIGSTOP)) worker.signal(SIGCONT);
}

void thaw_worker(Habitat& habitat) {
  habitat.worker("w1").signal(SIGCONT);
}

void kill_worker(Habitat& habitat) {
  with_outbox(habitat);
  Running& worker = habitat.start_worker("w1");
  habitat.append(1);
  habitat.expect_published();
  worker.signal(SIGKILL);
  worker.wait();
}

void kill_worker_and_append(Habitat& habitat) {
  kill_worker(habitat);
  habitat.append(1);
}

// ---- Partitions

void poison(Habitat& habitat) {
  habitat.settings["STELA_OUTBOX_ON_POISON"] = "stop";
  habitat.broker(small_payloads);
  with_outbox(habitat);
  habitat.append(1, 5000);
  habitat.publish();
}

void let_others_write(Habitat& habitat) {
  with_history(habitat);
  JetStream{habitat.broker().url()}.publish("shop.order.placed", "{}");
  habitat.append(1);
  habitat.publish();
}

void lose_stream(Habitat& habitat) {
  with_history(habitat);
  JetStream{habitat.broker().url()}.delete_stream("SHOP");
  habitat.append(1);
  habitat.publish();
}

/// Replaces the database by a copy that is older than its publications.
void go_back(Habitat& habitat) {
  with_history(habitat);
  const std::string copy = habitat.folder().file("copy.jsonl");
  habitat.well({"export", "--whole", copy});
  habitat.append(2);
  habitat.publish();
  habitat.move_to("copy.db");
  habitat.well({"import", copy});
  habitat.append(1);
  habitat.publish();
}

std::function<void(Habitat&)> stop(const std::string& reason) {
  return [=](Habitat& habitat) {
    with_history(habitat);
    habitat.sql("UPDATE outbox_partitions SET stopped = '" + reason +
                "', stopped_detail = 'as it is', stopped_at = " + in_sql(ago(5s)));
  };
}

void damage(Habitat& habitat) {
  with_history(habitat);
  habitat.sql("UPDATE outbox_partitions SET flight_count = -1");
  habitat.append(1);
  habitat.publish();
}

void repair(Habitat& habitat) {
  habitat.sql("UPDATE outbox_partitions SET flight_count = 0");
}

void lose_partition(Habitat& habitat) {
  leave_unattended(habitat);
  habitat.sql("UPDATE outbox_messages SET partition = 7");
}

void fill_stream(Habitat& habitat) {
  with_history(habitat);
  change_stream(1)(habitat);
  habitat.start_worker("w1");
  habitat.append(2);
}

/// Imitates a worker that has sent all pending messages, and got no answer.
void wait_for_an_answer(Habitat& habitat) {
  leave_unattended(habitat);
  habitat.note_worker();
  habitat.sql(
      "UPDATE outbox_partitions SET owner = 'w9', lease_ttl = 3600000000, flight_count = 3, "
      "moved_at = " +
      in_sql(ago(30s)) + ", lease_until = " + in_sql(ago(-1h)));
}

void get_an_answer(Habitat& habitat) {
  habitat.sql("UPDATE outbox_partitions SET flight_count = 0");
}

// ---- The broker's answers

void lose_broker_alone(Habitat& habitat) {
  with_history(habitat);
  habitat.broker().kill();
}

void delete_stream(Habitat& habitat) {
  with_history(habitat);
  JetStream{habitat.broker().url()}.delete_stream("SHOP");
}

void make_stream_anew(Habitat& habitat) {
  delete_stream(habitat);
  make_the_stream(habitat);
}

void notice_the_loss(Habitat& habitat) {
  habitat.append(1);
  habitat.publish();
}

void purge_stream(Habitat& habitat) {
  with_history(habitat);
  JetStream{habitat.broker().url()}.purge("SHOP");
}

void nearly_fill_stream(Habitat& habitat) {
  with_history(habitat);
  change_stream(1)(habitat);
}

void adopt_a_loss(Habitat& habitat) {
  lose_stream(habitat);
  habitat.well({"outbox", "partitions", "adopt", "all", "--yes"});
  habitat.publish();
}

// ---- Messages

void append_behind(Habitat& habitat) {
  park(habitat);
  habitat.appended = 0;
  habitat.append(1);
  habitat.publish();
}

void append_beside_a_worker(Habitat& habitat) {
  with_outbox(habitat);
  habitat.note_worker();
  habitat.append(1);
}

void discard(Habitat& habitat) {
  park(habitat);
  habitat.well({"outbox", "discard", "1", "--yes"});
}

void publish_again(Habitat& habitat) {
  with_history(habitat);
  habitat.well({"outbox", "republish", "--from", "1", "--to", "1", "--yes"});
}

void append_a_note(Habitat& habitat) {
  with_outbox(habitat);
  habitat.well({"events", "append", "--stream", "note-1", "--type", "note.taken", "--data", "{}"});
}

void rest(Habitat& habitat) {
  with_outbox(habitat);
  habitat.note_worker();
}

Animal stopped(const std::string& reason, std::function<void(Habitat&)> build) {
  const std::string code = "partition_" + reason;
  return {.code = code,
          .subject = "all",
          .build = std::move(build),
          .chains = {{"", {code}}, {"all", {code}}}};
}

std::vector<Animal> of_the_broker() {
  return {{.code = "partition_uncompared",
           .subject = "all",
           .build = adopt_a_loss,
           .chains = {{"", {"partition_uncompared"}}, {"all", {"partition_uncompared"}}}},
          {.code = "broker_unreached",
           .build = lose_broker_alone,
           .chains = {{"", {"broker_unreached"}}},
           .mend = start_the_broker,
           .is_undated = true},
          {.code = "stream_unfit",
           .subject = "all",
           .build = delete_stream,
           .chains = {{"", {"stream_unfit"}}, {"all", {"stream_unfit"}}},
           .is_undated = true},
          {.code = "stream_shorter",
           .subject = "all",
           .build = make_stream_anew,
           .chains = {{"", {"stream_shorter"}}},
           .mend = notice_the_loss,
           .settle = notice_the_loss,
           .is_undated = true},
          {.code = "stream_purged",
           .subject = "all",
           .build = purge_stream,
           .chains = {{"", {"stream_purged"}}},
           .is_undated = true},
          {.code = "stream_nearly_full",
           .subject = "all",
           .build = nearly_fill_stream,
           .chains = {{"", {"stream_nearly_full"}}},
           .mend = change_stream(-1),
           .is_undated = true}};
}

}  // namespace

std::vector<Animal> of_the_database() {
  std::vector<Animal> all{{.code = "database_down",
                           .build = lose_database,
                           .mend = give_database_back,
                           .is_undated = true},
                          {.code = "database_unanswered",
                           .subject = "known findings",
                           .build = hide_a_table,
                           .chains = {{"", {"database_unanswered"}}},
                           .mend = show_the_table,
                           .is_undated = true}};
  if (is_on_postgres()) {
    all.push_back({.code = "database_locked",
                   .subject = "inbox_readers",
                   .build = lock_a_table,
                   .chains = {{"", {"database_locked"}}, {"inbox_readers", {"database_locked"}}},
                   .mend = end_who_locks});
  }
  return all;
}

std::vector<Animal> of_the_outbox() {
  return {{.code = "outbox_unattended",
           .build = leave_unattended,
           .chains = {{"", {"outbox_unattended"}},
                      {"all", {"outbox_unattended"}},
                      {"2", {"message_pending", "outbox_unattended"}}}},
          {.code = "outbox_unattended",
           .variety = "_by_a_death",
           .build = kill_worker_and_append,
           .cause = "worker_ended",
           .chains = {{"", {"outbox_unattended", "worker_ended"}}}},
          {.code = "outbox_cut_off",
           .build = lose_broker_and_append,
           .cause = "worker_cut_off",
           .chains = {{"", {"outbox_cut_off", "worker_cut_off", "broker_unreached"}}},
           .mend = start_the_broker},
          {.code = "outbox_late",
           .build = be_late,
           .chains = {{"", {"outbox_late"}}},
           .mend = start_a_worker},
          {.code = "outbox_late",
           .variety = "_unattended",
           .build = be_late_and_unattended,
           .cause = "outbox_unattended",
           .chains = {{"", {"outbox_unattended"}}},
           .mend = start_a_worker},
          {.code = "outbox_parked",
           .build = park,
           .chains = {{"", {"outbox_parked"}}, {"all", {"outbox_parked"}}},
           .words = {{"SEQUENCE", "1"}}},
          {.code = "worker_cut_off",
           .subject = "w1",
           .build = lose_broker,
           .cause = "broker_unreached",
           .chains = {{"", {"broker_unreached"}}, {"w1", {"worker_cut_off", "broker_unreached"}}},
           .mend = start_the_broker},
          {.code = "worker_misconfigured",
           .subject = "w1",
           .build = miss_the_stream,
           .chains = {{"w1", {"worker_misconfigured"}}},
           .mend = make_the_stream},
          {.code = "worker_silent",
           .subject = "w1",
           .build = freeze_worker,
           .chains = {{"", {"worker_silent"}}, {"w1", {"worker_silent"}}},
           .mend = thaw_worker},
          {.code = "worker_ended",
           .subject = "w1",
           .build = kill_worker,
           .chains = {{"", {"worker_ended"}}, {"w1", {"worker_ended"}}},
           .mend = start_a_worker}};
}

std::vector<Animal> of_partitions() {
  std::vector<Animal> all{
      stopped("poison", poison),
      stopped("foreign_writer", let_others_write),
      stopped("broker_lost", lose_stream),
      stopped("store_went_back", go_back),
      stopped("unreadable", stop("unreadable")),
      stopped("damaged", damage),
      stopped("unrecognized", stop("frozen")),
      {.code = "partition_missing",
       .subject = "p06",
       .build = lose_partition,
       .chains = {{"", {"partition_missing"}}, {"1", {"message_pending", "partition_missing"}}},
       .is_undated = true},
      {.code = "partition_backing_off",
       .subject = "all",
       .build = fill_stream,
       .chains = {{"", {"partition_backing_off"}},
                  {"2", {"message_pending", "partition_backing_off"}}},
       .mend = change_stream(-1)},
      {.code = "partition_unanswered",
       .subject = "all",
       .build = wait_for_an_answer,
       .chains = {{"", {"partition_unanswered"}},
                  {"1", {"message_pending", "partition_unanswered"}}},
       .mend = get_an_answer},
      {.code = "partition_lease_expired",
       .subject = "all",
       .build = kill_worker,
       .cause = "worker_ended",
       .chains = {{"all", {"partition_lease_expired", "worker_ended"}}},
       .mend = start_a_worker}};
  for (Animal& each : of_the_broker()) all.push_back(std::move(each));
  for (Animal& each : all) {
    if (each.code == "partition_damaged") each.mend = repair;
  }
  return all;
}

std::vector<Animal> of_messages() {
  return {{.code = "message_parked",
           .subject = "1",
           .build = park,
           .chains = {{"1", {"message_parked"}}, {"order-1", {"message_parked"}}}},
          {.code = "message_parked_behind",
           .subject = "2",
           .build = append_behind,
           .chains = {{"2", {"message_parked_behind", "message_parked"}}}},
          {.code = "message_pending",
           .subject = "1",
           .build = append_beside_a_worker,
           .chains = {{"1", {"message_pending"}}}},
          {.code = "message_pending",
           .variety = "_again",
           .subject = "1",
           .build = publish_again,
           .chains = {{"1", {"message_pending", "outbox_unattended"}}}},
          {.code = "message_discarded",
           .subject = "1",
           .build = discard,
           .chains = {{"1", {"message_discarded"}}}},
          {.code = "message_published",
           .subject = "1",
           .build = with_history,
           .chains = {{"1", {"message_published"}}, {"order-1", {"message_published"}}}},
          {.code = "event_local",
           .subject = "1",
           .build = append_a_note,
           .chains = {{"1", {"event_local"}}, {"note-1", {"event_local"}}}},
          {.code = "well",
           .build = rest,
           .chains = {{"", nothing}, {"w9", nothing}, {"all", nothing}}}};
}

}  // namespace stela::test::zoo
