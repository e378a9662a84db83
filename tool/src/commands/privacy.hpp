// What the commands about personal data share.
#pragma once

#include "cli/command.hpp"

#include <stela/framework/codec/codec.hpp>
#include <stela/framework/keyring.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stela::tool {

class Invocation;
class StoreSession;

inline constexpr Operand subject_operand_of_keys{"SUBJECT",
                                                 "the person, by the name of a stream: guest-m1"};

/// As `--purpose` names it, and tables show it: the default one has no name.
inline std::string purpose_of(const std::string& text) {
  return text == "default" ? "" : text;
}

/// Finds what is sealed with some keys, without knowing types. Threads: any.
class SealMarks {
 public:
  SealMarks(Codec codec, std::span<const KeyInfo> keys);
  bool are_in(std::string_view payload) const;

 private:
  std::vector<std::string> marks_;
};

/// In the journal of the store. `detail` names keys, never people.
void note_privacy(Invocation& call, StoreSession& session, const std::string& what,
                  const std::string& subject, const std::string& detail);

/// "key 8PHy8_T19vf4-fr7_P3-_w, key …".
std::string ids_in_words(std::span<const KeyInfo> keys);

}  // namespace stela::tool
