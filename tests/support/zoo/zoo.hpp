// The zoo: one state of a store for each code of a finding. Produced by real means where these are
// cheap, otherwise by writing rows.
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
  /// The code's word, and a suffix that distinguishes states of the same code.
  std::string code = {};
  std::string variety = {};
  std::string subject = {};
  std::function<void(Habitat&)> build = {};
  /// The code of the cause in `stela check`.
  std::string cause = {};
  /// The codes in `stela why` of each subject. The empty subject means the worst finding.
  std::map<std::string, Codes> chains = {};
  /// Replacements for words in capitals in advised commands.
  std::map<std::string, std::string> words = {};
  /// The manual part of the advice, before its commands.
  std::function<void(Habitat&)> mend = {};
  /// The automatic part, after the commands.
  std::function<void(Habitat&)> settle = {};
  /// The store has no record of its beginning.
  bool is_undated = false;

  std::string name() const { return code + variety; }
};
inline void PrintTo(const Animal& animal, std::ostream* out) {
  *out << animal.name();
}

/// At least one for each code about a store or a message.
std::vector<Animal> animals();

// Its parts.
std::vector<Animal> of_the_database();
std::vector<Animal> of_the_outbox();
std::vector<Animal> of_partitions();
std::vector<Animal> of_messages();
std::vector<Animal> of_projections();
std::vector<Animal> of_consumers();

}  // namespace stela::test::zoo
