#include <stela/framework/codec/codec_error.hpp>
#include <stela/framework/codec/detail/json_reader.hpp>
#include <stela/framework/codec/detail/sealed_value.hpp>
#include <stela/framework/error.hpp>

#include <cstddef>
#include <optional>

namespace stela::codec {
namespace {

/// Walks through a payload and tracks the path of each text.
class Walk {
 public:
  Walk(std::string_view payload, const Opening& opening) : rest_{payload}, opening_{opening} {}

  std::string text() {
    while (!rest_.empty()) {
      if (rest_.front() == '"') {
        take_string();
      } else {
        take(rest_.front());
      }
    }
    return std::move(out_);
  }

 private:
  struct Level {
    bool is_array = false;
    bool is_name_next = false;
    std::size_t index = 0;
    std::string member = {};
  };

  void take(char c) {
    if (c == '{' || c == '[') levels_.push_back({.is_array = c == '[', .is_name_next = c == '{'});
    if ((c == '}' || c == ']') && !levels_.empty()) levels_.pop_back();
    if (c == ',' && !levels_.empty()) {
      ++levels_.back().index;
      levels_.back().is_name_next = !levels_.back().is_array;
    }
    out_ += c;
    rest_.remove_prefix(1);
  }

  void take_string() {
    std::size_t end = 1;
    while (end < rest_.size() && rest_[end] != '"') end += rest_[end] == '\\' ? 2 : 1;
    const std::string_view quoted = rest_.substr(0, end + 1);
    rest_.remove_prefix(quoted.size());
    if (!levels_.empty() && levels_.back().is_name_next) {
      json::Reader reader{quoted};
      levels_.back().member = reader.get_string();
      levels_.back().is_name_next = false;
    } else if (quoted.starts_with("\"~s1.")) {
      if (const auto opened = open(quoted.substr(1, quoted.size() - 2))) {
        out_ += *opened;
        return;
      }
    }
    out_ += quoted;
  }

  /// Empty also for a text that only looks sealed.
  std::optional<std::string> open(std::string_view text) const {
    try {
      const auto value = read_sealed(&opening_, path(), text, true);
      if (value->key != nullptr) return value->open();
    } catch (const DecodeError&) {
    } catch (const KeyMissing&) {
    } catch (const CorruptEvent&) {
    }
    return std::nullopt;
  }

  std::string path() const {
    PathText path;
    for (const Level& level : levels_) {
      if (level.is_array) {
        path.add_element(level.index);
      } else {
        path.add_member(level.member);
      }
    }
    return path.text();
  }

  std::string_view rest_;
  const Opening& opening_;
  std::vector<Level> levels_;
  std::string out_;
};

}  // namespace

std::string reveal(std::string_view payload, const Opening& opening) {
  return Walk{payload, opening}.text();
}

}  // namespace stela::codec
