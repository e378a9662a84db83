// One state of a store for each code of a finding: its zoo. Made by real means where these are
// cheap, else by rows.
#pragma once

#include "support/zoo/habitat.hpp"

#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <vector>

namespace stela::test::zoo {

/// Codes, by their words.
using Codes = std::vector<std::string>;

struct Animal {
  /// The code's word, and what tells it from others of the code.
  std::string code = {};
  std::string variety = {};
  std::string subject = {};
  std::function<void(Habitat&)> build = {};
  /// The code that `stela check` names as its cause.
  std::string cause = {};
  /// What `stela why` says of a subject; of the empty one: of the worst.
  std::map<std::string, Codes> chains = {};
  /// What stands for a word in capitals in a command that is advised.
  std::map<std::string, std::string> words = {};
  /// What the advice asks of a person, before its commands.
  std::function<void(Habitat&)> mend = {};
  /// What runs by itself after them.
  std::function<void(Habitat&)> settle = {};
  /// Nobody noted when it began.
  bool is_undated = false;

  std::string name() const { return code + variety; }
};
inline void PrintTo(const Animal& animal, std::ostream* out) {
  *out << animal.name();
}

/// At least one for each code of a store or of a message.
std::vector<Animal> animals();

// Its parts.
std::vector<Animal> of_the_database();
std::vector<Animal> of_the_outbox();
std::vector<Animal> of_partitions();
std::vector<Animal> of_messages();
std::vector<Animal> of_projections();
std::vector<Animal> of_consumers();

}  // namespace stela::test::zoo
