#include <stela/testing/golden.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <map>
#include <optional>

namespace stela::testing {
namespace {

std::string hex_of(std::string_view bytes) {
  std::string hex;
  for (const char byte : bytes) {
    hex += "0123456789abcdef"[static_cast<unsigned char>(byte) >> 4];
    hex += "0123456789abcdef"[static_cast<unsigned char>(byte) & 15];
  }
  return hex;
}

/// Empty if the text isn't hex.
std::optional<std::string> from_hex(std::string_view hex) {
  if (hex.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    unsigned byte = 0;
    const char* const end = hex.data() + i + 2;
    if (std::from_chars(hex.data() + i, end, byte, 16).ptr != end) return std::nullopt;
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

[[noreturn]] void refuse(const std::filesystem::path& file, std::string_view problem) {
  throw GoldenFailed{file.string() + " isn't a golden payload: " + std::string{problem} +
                     "; restore it from version control"};
}

/// A golden file: the payload in a line, and a line for each field.
struct Golden {
  std::string payload;
  std::vector<Field> fields;
};

std::optional<Golden> read_file(const std::filesystem::path& file, Codec codec) {
  std::ifstream in{file};
  Golden golden;
  if (!std::getline(in, golden.payload)) return std::nullopt;
  if (codec == Codec::portable_binary) {
    auto payload = from_hex(golden.payload);
    if (!payload) refuse(file, "its first line isn't hex");
    golden.payload = std::move(*payload);
  }
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) refuse(file, "'" + line + "' isn't 'field: value'");
    golden.fields.push_back({line.substr(0, colon), line.substr(colon + 2)});
  }
  return golden;
}

void write_file(const std::filesystem::path& file, Codec codec, const Golden& golden) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream out{file};
  out << (codec == Codec::json ? golden.payload : hex_of(golden.payload)) << '\n';
  for (const Field& field : golden.fields) out << field.path << ": " << field.value << '\n';
  if (!out.flush()) throw GoldenFailed{"writing " + file.string() + " failed"};
}

/// True if an added field is an optional without a value.
bool is_empty_optional(const Field& field) {
  const auto is = [&](std::string_view end, std::string_view value) {
    return field.path.ends_with(end) && field.value == value;
  };
  return is(".nullopt", "bool = true") || is(".ptr_wrapper.valid", "uint8 = 0");
}

/// The differences, one per line.
std::string differences(const std::vector<Field>& then, const std::vector<Field>& now,
                        Codec codec) {
  std::map<std::string_view, std::string_view> before;
  std::map<std::string_view, std::string_view> after;
  for (const Field& field : then) before.emplace(field.path, field.value);
  for (const Field& field : now) after.emplace(field.path, field.value);
  std::string text;
  for (const Field& field : then) {
    const auto found = after.find(field.path);
    if (found == after.end()) {
      text += "  " + field.path + " is gone; it was " + field.value + '\n';
    } else if (found->second != field.value) {
      text += "  " + field.path + " was " + field.value + " and is " + std::string{found->second} +
              '\n';
    }
  }
  for (const Field& field : now) {
    if (before.contains(field.path)) continue;
    if (codec == Codec::json && is_empty_optional(field)) continue;
    text += "  " + field.path + " is new: " + field.value + '\n';
  }
  if (text.empty() && codec == Codec::portable_binary && then != now) {
    text = "  the fields are in another order\n";
  }
  return text;
}

}  // namespace

std::string FieldsArchive::next_path() {
  if (nodes_.empty()) return {};
  Node& parent = nodes_.back();
  const std::size_t number = parent.count++;
  const std::string_view name = std::exchange(next_name_, {});
  if (parent.is_list) return parent.path + '[' + std::to_string(number) + ']';
  std::string path = parent.path.empty() ? "" : parent.path + '.';
  return path.append(name.data() != nullptr ? std::string{name} : codec::unnamed_field(number));
}

void FieldsArchive::begin_node(bool list) {
  nodes_.push_back({next_path(), list});
}

void FieldsArchive::make_list(std::size_t size) {
  Node& node = nodes_.back();
  node.is_list = true;
  fields_.push_back({node.path, "list of " + std::to_string(size)});
}

void FieldsArchive::end_node() {
  nodes_.pop_back();
}

void FieldsArchive::add(std::string value) {
  fields_.push_back({next_path(), std::move(value)});
}

void FieldsArchive::add_text(std::string_view text) {
  std::string value = "text = ";
  if (!json::try_append_string(value, text)) value = "bytes = " + hex_of(text);
  add(std::move(value));
}

void FieldsArchive::add_number(double value, std::string_view kind) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  add(std::string{kind}.append(" = ").append(digits.data(), end));
}

GoldenPayloads::GoldenPayloads(std::filesystem::path folder, Codec codec)
    : folder_{std::move(folder)}, codec_{codec} {}

void GoldenPayloads::check(const EventType& type, std::string_view sample, Reader read) const {
  const std::string event = std::string{type.name} + " v" + std::to_string(type.version);
  const auto file =
      folder_ / (std::string{type.name} + ".v" + std::to_string(type.version) + ".golden");
  const auto golden = read_file(file, codec_);
  if (!golden) {
    write_file(file, codec_, {std::string{sample}, read(sample)});
    throw GoldenFailed{event + " had no golden payload; " + file.string() +
                       " was written: look at it, keep it under version control, run again"};
  }
  std::string problem;
  try {
    problem = differences(golden->fields, read(golden->payload), codec_);
  } catch (const codec::DecodeError& e) {
    problem = std::string{"  it isn't read any more: "} + e.what() + '\n';
  }
  if (problem.empty()) return;
  throw GoldenFailed{event + " isn't what is stored in " + file.string() + ":\n" + problem +
                     "Give the changed event a new version that supersedes this one, and keep this "
                     "one as it was. If no event of this version was ever stored, delete the file "
                     "and run again."};
}

}  // namespace stela::testing
