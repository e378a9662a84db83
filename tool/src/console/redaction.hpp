// Takes out of answers what applications have put into a database.
#pragma once

#include "console/people.hpp"

#include <string>
#include <string_view>

namespace stela::tool {

/// Of a text that isn't shown. Keys, and how long texts and lists are, stay where it is masked.
inline constexpr std::string_view not_shown = "(not shown)";

/// Payloads are those of events, timers and parked messages, metadata, headers and states: null, or
/// masked. Threads: any number may use it.
class Redaction {
 public:
  /// Texts that may have something of a payload are hidden as well: tags, errors, the details of a
  /// change. Of them all keys are, but for those that are known to name things.
  Redaction(Payloads shown, bool hides_texts) : shown_{shown}, hides_texts_{hides_texts} {}
  /// Sentences as well, whole: they name what applications have put in.
  Redaction without_sentences() const {
    Redaction more{*this};
    more.hides_sentences_ = true;
    return more;
  }

  /// `has_states` is for answers in which "state" is an aggregate's, and never a word.
  std::string json(std::string_view json, bool has_states = false) const;
  /// The tool's sentences quote an error after a colon.
  std::string sentence(std::string_view text) const;

 private:
  std::string value(std::string_view key, std::string_view json, bool has_states) const;
  std::string hidden(std::string_view json) const;
  /// What follows the colon is a quote; without one, nothing is.
  std::string shown_through(std::string_view text, std::size_t colon) const;
  std::string hidden_text(std::string_view text) const;

  Payloads shown_;
  bool hides_texts_;
  bool hides_sentences_ = false;
};

}  // namespace stela::tool
