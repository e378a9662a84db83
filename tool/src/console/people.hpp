// The people on the console, and their grants.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace stela::tool {

/// The grants that routes need. `payloads` is unmasked application data.
enum class Grant : std::uint8_t { view, payloads, operate, admin };
std::string_view name_of(Grant grant) noexcept;

/// Masked payloads show keys, types and lengths.
enum class Payloads : std::uint8_t { none, masked, full };
std::string_view name_of(Payloads payloads) noexcept;

/// Grants nothing by default.
struct Grants {
  bool view = false;
  Payloads payloads = Payloads::none;
  bool operate = false;
  bool admin = false;

  static Grants all() noexcept { return {true, Payloads::full, true, true}; }
  bool has(Grant grant) const noexcept;
};

/// Misuse, naming the option, if the file can't be read, or if anybody but its owner may read it.
std::string read_private(std::string_view option, const std::string& path);

/// A file with a line per person: name, grants, and the SHA-256 of a token. A person without a
/// token can only come through a proxy. The file is read again when it has changed. While it is
/// unreadable or has an invalid line, nobody in it has a grant. Threads: any.
class People {
 public:
  struct Person {
    Grants grants = {};
    std::string token_hash = {};
  };

  /// A name and a token that no line of the file may have.
  struct Taken {
    /// The name of users with a link. Empty: there are no links.
    std::string name = {};
    /// The token of programs. Empty: none.
    std::string token = {};
  };

  /// Misuse if the file is invalid. An empty path means no file and no people.
  People(std::string path, Taken taken);
  explicit People(std::string path) : People{std::move(path), Taken{}} {}

  bool is_used() const noexcept { return !path_.empty(); }
  std::optional<Person> find(std::string_view name);
  /// The name of the token's owner.
  std::optional<std::string> name_by_token(std::string_view token);

 private:
  void read_again();

  const std::string path_;
  const Taken taken_;
  std::mutex mutex_;
  /// The modification time, size and identity of the file that was read last.
  std::string version_;
  std::map<std::string, Person, std::less<>> people_;
};

}  // namespace stela::tool
