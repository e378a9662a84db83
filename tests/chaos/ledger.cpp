#include "chaos/ledger.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <map>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>

namespace stela::chaos {

Ledger::Ledger(const std::string& file)
    : file_{::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)} {}

Ledger::~Ledger() {
  close(file_);
}

void Ledger::note(const Attempt& attempt) {
  std::string line = attempt.id;
  const std::array numbers{attempt.first, std::int64_t{attempt.count},
                           static_cast<std::int64_t>(attempt.state), attempt.sequence};
  for (const std::int64_t number : numbers) line.append(" ").append(std::to_string(number));
  line += '\n';
  if (write(file_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    throw std::runtime_error{"the ledger can't be written"};
  }
}

std::vector<Attempt> Ledger::read(const std::string& file) {
  std::vector<Attempt> attempts;
  std::unordered_map<std::string, std::size_t> places;
  std::ifstream lines{file};
  Attempt attempt;
  int state = 0;
  while (lines >> attempt.id >> attempt.first >> attempt.count >> state >> attempt.sequence) {
    attempt.state = static_cast<Attempt::State>(state);
    const auto [place, is_new] = places.emplace(attempt.id, attempts.size());
    if (is_new) attempts.push_back({});
    attempts[place->second] = attempt;
  }
  return attempts;
}

namespace {

using Tickets = std::unordered_map<std::int64_t, std::vector<std::int64_t>>;

/// Where the attempt's tickets stand: the sequence of the first of them if they are there once, one
/// behind the other; 0 if none is there.
struct Standing {
  std::int64_t sequence = 0;
  std::string trouble = {};
};

Standing standing_of(const Attempt& attempt, const Tickets& tickets) {
  Standing standing;
  int found = 0;
  for (int i = 0; i < attempt.count; ++i) {
    const auto ticket = tickets.find(attempt.first + i);
    if (ticket == tickets.end()) continue;
    ++found;
    if (ticket->second.size() > 1) standing.trouble = "an append is there twice";
    if (i == 0) standing.sequence = ticket->second.front();
    if (ticket->second.front() != standing.sequence + i) standing.trouble = "an append is torn";
  }
  if (found != 0 && found != attempt.count) standing.trouble = "an append is there in part";
  return standing;
}

std::string trouble_of(const Attempt& attempt, const Standing& standing) {
  if (!standing.trouble.empty()) return standing.trouble;
  if (attempt.state == Attempt::State::stored && standing.sequence != attempt.sequence) {
    return "an acknowledged append is lost";
  }
  const bool is_there = standing.sequence != 0;
  if (attempt.state == Attempt::State::refused && is_there) return "a refused append is there";
  return {};
}

}  // namespace

std::vector<std::string> contradictions(const std::vector<Attempt>& attempts,
                                        const std::vector<StoredTicket>& tickets) {
  Tickets by_serial;
  for (const StoredTicket& ticket : tickets) {
    by_serial[ticket.serial].push_back(ticket.sequence);
  }
  std::vector<std::string> found;
  std::unordered_set<std::int64_t> attempted;
  for (const Attempt& attempt : attempts) {
    const std::string trouble = trouble_of(attempt, standing_of(attempt, by_serial));
    if (!trouble.empty()) found.push_back(trouble + ": " + attempt.id);
    for (int i = 0; i < attempt.count; ++i) attempted.insert(attempt.first + i);
  }
  for (const StoredTicket& ticket : tickets) {
    if (attempted.contains(ticket.serial)) continue;
    found.push_back("a ticket that nobody attempted: sequence " + std::to_string(ticket.sequence));
  }
  return found;
}

}  // namespace stela::chaos
