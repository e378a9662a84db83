#include "console/people.hpp"

#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "console/sessions.hpp"
#include "console/sha256.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <utility>

namespace stela::tool {
namespace {

using AllPeople = std::map<std::string, People::Person, std::less<>>;

Grants grants_in(std::string_view list) {
  Grants grants;
  int times_payloads = 0;
  while (!list.empty()) {
    const std::string_view word = list.substr(0, list.find(','));
    list.remove_prefix(std::min(word.size() + 1, list.size()));
    if (word.starts_with("payloads") && ++times_payloads > 1) {
      throw Misuse{
          "'payloads' is there twice: say one of payloads, payloads=masked, payloads=none"};
    }
    if (word == "view") {
      grants.view = true;
    } else if (word == "payloads" || word == "payloads=full") {
      grants.payloads = Payloads::full;
    } else if (word == "payloads=masked") {
      grants.payloads = Payloads::masked;
    } else if (word == "operate") {
      grants.operate = true;
    } else if (word == "admin") {
      grants.admin = true;
    } else if (word != "payloads=none") {
      throw Misuse{"there is no grant '" + in_one_line(word) +
                   "'; there are view, payloads, payloads=masked, payloads=none, operate and "
                   "admin"};
    }
  }
  if (!grants.view) throw Misuse{"whoever has a grant has 'view', too"};
  return grants;
}

bool is_hash(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

void add_line(const std::string& line, const People::Taken& taken, AllPeople& people) {
  std::istringstream words{line};
  std::string name;
  std::string grants;
  std::string more;
  People::Person person;
  if (!(words >> name) || name.starts_with('#')) return;
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  if (name.find(byte_order_mark) != std::string::npos ||
      std::any_of(name.begin(), name.end(),
                  [](unsigned char c) { return c < 0x20 || c == 0x7f; })) {
    throw Misuse{"a name has letters that are seen: not '" + in_one_line(name) + "'"};
  }
  if (!(words >> grants)) throw Misuse{"a line is NAME GRANTS SHA256"};
  person.grants = grants_in(grants);
  if (words >> person.token_hash && !is_hash(person.token_hash)) {
    throw Misuse{
        "the hash of a token has 64 hexadecimal digits in lower case, as sha256sum "
        "prints it"};
  }
  if (words >> more) throw Misuse{"a line is NAME GRANTS SHA256"};
  if (name == taken.name) {
    throw Misuse{"'" + name +
                 "' runs this console, and acts under that name by its link: give the person "
                 "another one"};
  }
  if (!taken.token.empty() && person.token_hash == sha256(taken.token)) {
    throw Misuse{"the token of '" + name + "' is that of --token-file: give each its own"};
  }
  const bool is_given_twice =
      !person.token_hash.empty() && std::any_of(people.begin(), people.end(), [&](const auto& one) {
        return one.second.token_hash == person.token_hash;
      });
  if (is_given_twice) throw Misuse{"two people have the same token"};
  if (!people.emplace(name, std::move(person)).second) {
    throw Misuse{"'" + in_one_line(name) + "' is there twice"};
  }
}

AllPeople people_in(const std::string& path, const People::Taken& taken) {
  std::istringstream lines{read_private("--people-file", path)};
  AllPeople people;
  std::int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    try {
      add_line(line, taken, people);
    } catch (const Misuse& e) {
      throw Misuse{path + ":" + std::to_string(number) + ": " + e.what()};
    }
  }
  return people;
}

/// Changes with every change of the file. Empty if the file is missing.
std::string version_of(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return {};
  std::ostringstream text;
  text << status.st_ino << ' ' << status.st_size << ' ' << status.st_mode << ' '
       << status.st_mtim.tv_sec << '.' << status.st_mtim.tv_nsec;
  return text.str();
}

}  // namespace

std::string_view name_of(Grant grant) noexcept {
  constexpr std::string_view names[] = {"view", "payloads", "operate", "admin"};
  return names[static_cast<std::size_t>(grant)];
}

std::string_view name_of(Payloads payloads) noexcept {
  constexpr std::string_view names[] = {"none", "masked", "full"};
  return names[static_cast<std::size_t>(payloads)];
}

bool Grants::has(Grant grant) const noexcept {
  switch (grant) {
    case Grant::view:
      return view;
    case Grant::payloads:
      return view && payloads == Payloads::full;
    case Grant::operate:
      return view && operate;
    case Grant::admin:
      return view && admin;
  }
  return false;
}

std::string read_private(std::string_view option, const std::string& path) {
  struct stat status {};
  // Without O_NONBLOCK, opening a pipe would wait for its writer.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  const bool is_file = file >= 0 && ::fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  if (file >= 0) ::close(file);
  std::ifstream in;
  if (is_file) in.open(path, std::ios::binary);
  if (!is_file || !in) {
    throw Misuse{std::string{option} + ": '" + path + "' isn't a file that can be read"};
  }
  if ((status.st_mode & 077U) != 0) {
    throw Misuse{"others may read '" + path + "': chmod 600 " + path};
  }
  return {std::istreambuf_iterator<char>{in}, {}};
}

People::People(std::string path, Taken taken) : path_{std::move(path)}, taken_{std::move(taken)} {
  if (path_.empty()) return;
  version_ = version_of(path_);
  people_ = people_in(path_, taken_);
}

void People::read_again() {
  const std::string version = path_.empty() ? version_ : version_of(path_);
  if (version == version_) return;
  version_ = version;
  people_.clear();
  try {
    people_ = people_in(path_, taken_);
  } catch (const std::exception& e) {
    std::cerr << "Nobody of --people-file gets in: " + in_one_line(e.what()) + "\n" << std::flush;
  }
}

std::optional<People::Person> People::find(std::string_view name) {
  const std::lock_guard lock{mutex_};
  read_again();
  const auto found = people_.find(name);
  return found == people_.end() ? std::nullopt : std::optional{found->second};
}

std::optional<std::string> People::name_by_token(std::string_view token) {
  const std::string hash = sha256(token);
  const std::lock_guard lock{mutex_};
  read_again();
  std::optional<std::string> name;
  for (const auto& [one, person] : people_) {
    if (is_same_secret(person.token_hash, hash)) name = one;
  }
  return name;
}

}  // namespace stela::tool
