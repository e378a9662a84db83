#include "subject_layout.hpp"

#include <stela/framework/context.hpp>
#include <stela/framework/error.hpp>

#include <algorithm>

namespace stela::nats {
namespace {

bool is_token(std::string_view text) noexcept {
  if (text.empty()) return false;
  for (const char c : text) {
    if (c <= ' ' || c > '~' || c == '.' || c == '*' || c == '>') return false;
  }
  return true;
}

bool is_subject(std::string_view text) noexcept {
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('.', begin), text.size());
    if (!is_token(text.substr(begin, end - begin))) return false;
    begin = end + 1;
  }
  return true;
}

[[noreturn]] void refuse_template(std::string_view subject, const std::string& problem) {
  throw UsageError{"the subject '" + std::string{subject} + "' " + problem};
}

}  // namespace

bool is_of_servers(std::string_view subject) noexcept {
  return subject.starts_with('$') || subject.substr(0, subject.find('.')) == "_INBOX";
}

std::string as_token(std::string_view text) {
  static constexpr char digits[] = "0123456789ABCDEF";
  std::string token;
  for (const char c : text) {
    if (c > ' ' && c <= '~' && c != '.' && c != '*' && c != '>' && c != '%') {
      token += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    token += '%';
    token += digits[byte >> 4];
    token += digits[byte & 15];
  }
  return token.empty() ? "_" : token;
}

std::string api_prefix(const JetStreamApi& api) {
  if (!api.domain.empty() && !api.prefix.empty()) {
    throw UsageError{"a JetStream domain and a prefix of its API say the same: give one"};
  }
  if (!api.domain.empty() && !is_token(api.domain)) {
    throw UsageError{"the JetStream domain '" + api.domain +
                     "' isn't one token of a subject: no dots, spaces, '*' and '>'"};
  }
  if (!api.prefix.empty() && !is_subject(api.prefix)) {
    throw UsageError{"the prefix '" + api.prefix +
                     "' of the JetStream API can't begin a subject: it is as \"JS.shop.API\""};
  }
  if (!api.domain.empty()) return "$JS." + api.domain + ".API.";
  return (api.prefix.empty() ? "$JS.API" : api.prefix) + '.';
}

bool is_stream_name(std::string_view name) noexcept {
  return is_token(name) && name.find_first_of("/\\") == std::string_view::npos;
}

void check_stream_name(std::string_view name) {
  if (is_stream_name(name)) return;
  throw UsageError{"stream '" + std::string{name} +
                   "' can't be the name of a JetStream stream: no dots, spaces, slashes, '*' and "
                   "'>'"};
}

SubjectLayout::SubjectLayout(const PublisherOptions& options)
    : fence_{options.fence}, prefix_{options.prefix}, stream_{options.stream} {
  if (!is_token(prefix_)) {
    throw UsageError{"prefix '" + prefix_ +
                     "' isn't one token of a subject: no dots, spaces, '*' and '>'"};
  }
  if (is_of_servers(prefix_)) {
    throw UsageError{"the prefix '" + prefix_ +
                     "' begins the server's own subjects, and a stream of them would take the "
                     "requests of the whole account; take a word of your own, such as \"shop\""};
  }
  if (!options.tenant.empty()) add_tenant(options.tenant);
  check_stream_name(stream_);
  parse(options.subject);
}

void SubjectLayout::add_tenant(const std::string& tenant) {
  if (!is_token(tenant)) {
    throw UsageError{"tenant '" + tenant + "' isn't one token of a subject: no dots and spaces"};
  }
  shared_prefix_ = prefix_;
  prefix_ += '.' + tenant;
  if (fence_ != Fence::subject) stream_ += '_' + tenant;
}

void SubjectLayout::parse(std::string_view subject) {
  std::string_view rest = subject;
  while (!rest.empty()) {
    const std::size_t open = rest.find('{');
    const std::string_view text = rest.substr(0, open);
    if (!text.empty()) parts_.push_back({Part::Kind::text, std::string{text}});
    if (open == std::string_view::npos) break;
    const std::size_t close = rest.find('}', open);
    if (close == std::string_view::npos) refuse_template(subject, "has a '{' without its '}'");
    add_part(rest.substr(open + 1, close - open - 1), subject);
    rest.remove_prefix(close + 1);
  }
  if (parts_.empty()) refuse_template(subject, "is empty");
  // The text between placeholders must leave no token empty.
  std::string shape;
  for (const Part& part : parts_) shape += part.kind == Part::Kind::text ? part.text : "x";
  if (!is_subject(shape)) {
    refuse_template(subject, "has an empty token, or one with a space, '*' or '>'");
  }
}

void SubjectLayout::add_part(std::string_view name, std::string_view subject) {
  using Kind = Part::Kind;
  constexpr std::string_view header = "header:";
  if (name == "event") {
    parts_.push_back({Kind::event, {}});
  } else if (name == "category") {
    parts_.push_back({Kind::category, {}});
  } else if (name == "stream") {
    parts_.push_back({Kind::stream, {}});
  } else if (name == "partition") {
    parts_.push_back({Kind::partition, {}});
  } else if (name.starts_with(header) && name.size() > header.size()) {
    parts_.push_back({Kind::header, std::string{name.substr(header.size())}});
  } else {
    refuse_template(subject, "asks for {" + std::string{name} +
                                 "}; there are {event}, {category}, {stream}, {partition} and "
                                 "{header:NAME}");
  }
}

std::string SubjectLayout::suffix(PartitionId partition) const {
  const bool own_stream = fence_ == Fence::stream && partition.number > 0;
  return own_stream ? '_' + partition.label() : std::string{};
}

std::string SubjectLayout::subject(PartitionId partition, const StoredEvent& event) const {
  if (fence_ == Fence::subject) return subject_of(partition);
  std::string subject = prefix_ + suffix(partition) + '.';
  for (const Part& part : parts_) {
    switch (part.kind) {
      case Part::Kind::text:
        subject += part.text;
        break;
      case Part::Kind::event:
        // The type's dots separate tokens.
        subject += event.type();
        break;
      case Part::Kind::category:
        subject += as_token(event.stream.category());
        break;
      case Part::Kind::stream:
        subject += as_token(event.stream.name());
        break;
      case Part::Kind::partition:
        subject += partition.label();
        break;
      case Part::Kind::header: {
        const Context context = event.context();
        const auto found = context.headers.find(part.text);
        subject += as_token(found == context.headers.end() ? std::string_view{}
                                                           : std::string_view{found->second});
        break;
      }
    }
  }
  return subject;
}

}  // namespace stela::nats
