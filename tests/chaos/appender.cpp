#include "chaos/appender.hpp"

#include "support/process.hpp"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <utility>

namespace stela::chaos {
namespace {

constexpr std::int64_t streams = 150;
/// Large ones come so rarely that all of them together make so much of each event.
constexpr std::int64_t large_bytes_each = 625;
/// So far apart are the serial numbers of two processes.
constexpr std::int64_t serials = 1'000'000'000'000;

/// The same events whenever an attempt is made: all of it follows from its first serial number.
void record(UnitOfWork& unit, const Attempt& attempt, int large_size) {
  const std::int64_t seed = attempt.first * 7'919;
  const StreamId stream = StreamId::of("ticket", std::to_string(seed % streams));
  for (int i = 0; i < attempt.count; ++i) {
    const std::int64_t one_in = large_size / large_bytes_each;
    const bool is_large = one_in > 0 && (seed + i) % one_in == 0;
    const auto size = static_cast<std::size_t>(is_large ? large_size : (seed + i) % 200);
    unit.append(stream, ExpectedVersion::any(),
                TicketIssued{attempt.first + i, std::string(size, 'x')});
  }
  if (seed % 4 == 0) unit.append(stream, ExpectedVersion::any(), TicketSeen{attempt.first});
}

}  // namespace

void DieBehindNth::after(const test::FileCall& call, int /*code*/) noexcept {
  const bool counts =
      call.operation == test::FileOperation::write || call.operation == test::FileOperation::sync;
  if (counts && call.file == test::FileKind::wal && --left_ == 0) raise(SIGKILL);
}

Appender::Appender(const Settings& settings, const Part& part)
    : part_{part},
      large_size_{settings.large_size},
      longest_pause_{
          static_cast<std::uint64_t>(std::chrono::microseconds{settings.append_pause()}.count())},
      clock_{settings.clock_of(part.number)},
      death_in_log_{part.death.nth},
      vfs_{part.death.at == Death::At::log ? std::make_unique<test::FaultVfs>(death_in_log_)
                                           : nullptr},
      store_{open_shop(settings, store_options())},
      outbox_{store_, outbox_options(settings)},
      before_{Ledger::read(ledger_of(settings, part.number))},
      ledger_{ledger_of(settings, part.number)},
      random_{settings.seed * 1'000 + static_cast<std::uint64_t>(getpid())},
      serial_{before_.empty() ? serials * (part.number + 1)
                              : before_.back().first + before_.back().count},
      answers_left_{part.death.at == Death::At::answer ? part.death.nth : 0} {}

ShopOptions Appender::store_options() const {
  return {.number = part_.number, .clock = &clock_, .vfs = vfs_ ? vfs_->name() : std::string{}};
}

void Appender::run(const std::stop_token& stop) {
  if (!before_.empty() && before_.back().state == Attempt::State::unanswered && once_in(2)) {
    settle(before_.back(), stop, true);
  }
  while (!stop.stop_requested()) {
    settle(begin_next(), stop);
    test::is_stopped_within(std::chrono::microseconds{random_() % longest_pause_}, stop);
  }
}

void Appender::append(int times) {
  for (int i = 0; i < times; ++i) {
    Attempt attempt = begin_next();
    retry([&] { try_once(attempt); });
  }
}

Attempt Appender::begin_next() {
  const auto count = static_cast<int>(1 + random_() % 4);
  const std::int64_t first = std::exchange(serial_, serial_ + count);
  return {.id = "append-" + std::to_string(first), .first = first, .count = count};
}

void Appender::settle(Attempt attempt, const std::stop_token& stop, bool may_stand) {
  do {
    try {
      return try_once(attempt);
    } catch (const Error& e) {
      if (!may_pass(e)) throw;
      // A refusal says nothing of what an earlier process didn't hear of.
      attempt.state = may_stand ? Attempt::State::unanswered : Attempt::State::refused;
      ledger_.note(attempt);
    }
    test::is_stopped_within(std::chrono::milliseconds{20}, stop);
  } while (!stop.stop_requested() && !once_in(3));
}

void Appender::try_once(Attempt& attempt) {
  attempt.state = Attempt::State::unanswered;
  ledger_.note(attempt);
  UnitOfWork unit{store_};
  record(unit, attempt, large_size_);
  const AppendResult result = unit.commit({.append_id = attempt.id});
  if (answers_left_ > 0 && --answers_left_ == 0) raise(SIGKILL);
  attempt.state = Attempt::State::stored;
  attempt.sequence = result.first.value();
  ledger_.note(attempt);
}

}  // namespace stela::chaos
