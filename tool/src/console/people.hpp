// Who may do what on the console.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace stela::tool {

/// What a route needs. `payloads` is all that applications have put in, as it is.
enum class Grant : std::uint8_t { view, payloads, operate, admin };
std::string_view name_of(Grant grant) noexcept;

/// Masked: keys, types and lengths are shown.
enum class Payloads : std::uint8_t { none, masked, full };
std::string_view name_of(Payloads payloads) noexcept;

/// Nothing unless it was given.
struct Grants {
  bool view = false;
  Payloads payloads = Payloads::none;
  bool operate = false;
  bool admin = false;

  static Grants all() noexcept { return {true, Payloads::full, true, true}; }
  bool has(Grant grant) const noexcept;
};

/// Misuse, naming the option, if the file can't be read, or others than its owner may read it.
std::string read_private(std::string_view option, const std::string& path);

/// A file with a line for each: name, grants, and the SHA-256 of a token. Without that, a person
/// comes by way of a proxy only. It is read again when it has changed; while it can't be, or has a
/// line that isn't understood, nobody in it has a grant. Threads: any.
class People {
 public:
  struct Person {
    Grants grants = {};
    std::string token_hash = {};
  };

  /// What nobody in the file may have.
  struct Taken {
    /// Whoever opens a link acts under this name; empty: there are no links.
    std::string name = {};
    /// The token of programs; empty: there is none.
    std::string token = {};
  };

  /// Misuse if the file is wrong. An empty path is no file: it knows nobody.
  People(std::string path, Taken taken);
  explicit People(std::string path) : People{std::move(path), Taken{}} {}

  bool is_used() const noexcept { return !path_.empty(); }
  std::optional<Person> find(std::string_view name);
  /// The name of the one whose token it is.
  std::optional<std::string> name_by_token(std::string_view token);

 private:
  void read_again();

  const std::string path_;
  const Taken taken_;
  std::mutex mutex_;
  /// Of the file that was read last: when it was written, how long it is, and which it is.
  std::string version_;
  std::map<std::string, Person, std::less<>> people_;
};

}  // namespace stela::tool
