const greetings = { en: "Hello", de: "Hallo", fr: "Bonjour" };

export function greet(name, language = "en") {
  return `${greetings[language]}, ${name}!`;
}
