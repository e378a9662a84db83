// The writer's confirmation that a result can't be lost, before it is returned.
#include "postgres/event_rows.hpp"
#include "postgres/writer.hpp"
#include "postgres_sql/settlement.hpp"

#include <stela/framework/detail/append_check.hpp>
#include <stela/framework/error.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <thread>
#include <utility>

namespace stela::postgres {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds first_confirmation_pause{50};
constexpr std::chrono::milliseconds longest_confirmation_pause{1000};

/// True if the result needs no confirmation.
bool is_sure(const Rest& rest) noexcept {
  return !rest.in_doubt && (rest.is_durable || (rest.sequence == 0 && !rest.is_unnumbered));
}

}  // namespace

void complete_repeated(Connection& connection, const AppendRequest& request, AppendResult& result) {
  auto rows = connection.rows(
      sql::appended_streams{.first = result.first.value(), .last = result.last.value()});
  AppendedStreams streams;
  while (rows.step()) streams[std::string{rows.name()}] = {rows.events(), rows.version()};
  repeat_append(request, std::move(streams), result);
}

void Writer::confirm(WriteWork& work, Findings& findings) noexcept {
  const bool is_late = work.confirm_until == steady_clock::time_point{};
  const StandbyPatience patience{
      sessions_, is_late ? steady_clock::now() + settings_.commit_timeout : work.confirm_until};
  // Committed work must not wait for readers to return their sessions.
  const Sessions::Urgent urgent;
  std::string why;
  std::chrono::milliseconds pause = first_confirmation_pause;
  try {
    if (!findings.given_up.empty() && !is_sure(work.rest) &&
        steady_clock::now() >= patience.deadline) {
      end_unconfirmed(work, findings.given_up);
      return;
    }
    while (true) {
      try {
        if (try_to_confirm(work, patience, findings)) break;
        continue;
      } catch (const StoreBusy& e) {
        why = e.what();
      } catch (const StoreFailed& e) {
        why = e.what();
      }
      if (steady_clock::now() >= patience.deadline) {
        end_unconfirmed(work, why);
        findings.given_up = why;
        return;
      }
      std::this_thread::sleep_for(
          std::exchange(pause, std::min(2 * pause, longest_confirmation_pause)));
    }
    const State failed = work.rest.is_cut ? State::in_doubt : State::rolled_back;
    work.outcomes.settle(work.error ? failed : State::committed);
    if (!work.error && work.result.repeated && work.result.versions.empty()) {
      complete_repeated(work);
    }
  } catch (...) {
    work.error = std::current_exception();
    work.outcomes.settle(work.rest.in_doubt ? State::in_doubt : State::rolled_back);
  }
}

bool Writer::try_to_confirm(WriteWork& work, const StandbyPatience& patience, Findings& findings) {
  Rest& rest = work.rest;
  if (rest.in_doubt) {
    settle(work, patience, findings);
    return true;
  }
  if (is_sure(rest)) return true;
  const auto sequence = rest.is_unnumbered ? std::nullopt : std::optional{rest.sequence};
  if (durability_.flush(rest.run, sequence, patience.deadline)) return true;
  // The server has restarted: unflushed commits are lost, perhaps including this one.
  if (rest.wrote) {
    rest.in_doubt = true;
    return false;
  }
  work.error = std::make_exception_ptr(
      StoreBusy{"the server was restarted while the work ran; nothing was written; try again"});
  return true;
}

void Writer::settle(WriteWork& work, const StandbyPatience& patience, Findings& findings) {
  if (findings.group != work.rest.group) {
    const auto settling = sessions_.open();
    findings.settled =
        settle_group(*settling, work.rest.group, order_lock_, lock_timeout_, patience);
    findings.group = work.rest.group;
  }
  const Settled& settled = findings.settled;
  if (settled.is_void) {
    work.rest.in_doubt = false;
    work.events.clear();
    work.snapshots.clear();
    work.error = std::make_exception_ptr(StoreBusy{
        "the server ended, or the connection to it, before the commit was durable; nothing was "
        "written; try again"});
    return;
  }
  // If this throws, the commit is still in doubt.
  if (!work.rest.wrote && work.request != nullptr) find_result(work, settled);
  work.rest.in_doubt = false;
}

void Writer::find_result(WriteWork& work, const Settled& settled) {
  // Only the events show which members of the group were carried out.
  std::int64_t first = 0;
  std::map<Uuid, std::pair<std::int64_t, std::int64_t>> found;
  reading_.read([&](Connection& connection) {
    auto rows = connection.rows(sql::appended_events{.first = settled.first, .last = settled.last});
    while (rows.step()) found[rows.event_id()] = {rows.sequence(), rows.version()};
  });
  if (!work.ids.empty() && found.contains(work.ids.front())) first = found[work.ids.front()].first;
  if (first == 0) {
    work.error = std::make_exception_ptr(StoreBusy{
        "the connection to the server was lost before it answered, and no event was written; try "
        "again"});
    return;
  }
  work.result = {.first = GlobalSequence{first}};
  std::size_t next = 0;
  for (const StreamAppend& append : work.request->streams) {
    next += append.events.size();
    const auto checked = append.expected.version().value_or(StreamVersion{0});
    work.result.versions.push_back(
        append.events.empty() ? checked : StreamVersion{found[work.ids[next - 1]].second});
  }
  work.result.last = GlobalSequence{found[work.ids.back()].first};
}

void Writer::end_unconfirmed(WriteWork& work, const std::string& why) {
  const bool may_stand = work.rest.wrote || work.rest.in_doubt;
  work.outcomes.settle(may_stand ? State::in_doubt : State::rolled_back);
  if (may_stand) {
    work.error = std::make_exception_ptr(CommitInDoubt{
        "whether the commit is durable isn't known: " + why +
        "; append again under the same append_id; without one, read the stream first"});
  } else {
    work.error = std::make_exception_ptr(StoreBusy{why});
  }
}

void Writer::complete_repeated(WriteWork& work) {
  reading_.read([&](Connection& connection) {
    AppendResult result = work.result;
    postgres::complete_repeated(connection, *work.request, result);
    work.result = std::move(result);
  });
}

}  // namespace stela::postgres
