"""Three more sets of prompts that ask for nothing: work on the code at hand, steering a session, anything
else. Written before the decision that they judge was read.

Twelve kinds a set. Every second kind was meant to be kept aside, but figures of both halves were printed
while the thresholds were chosen: neither is an independent check.
"""

from __future__ import annotations

AT_HAND: dict[str, str] = {
    "edit here": """
extract this block into a helper / move the constant to the top of the file / inline that variable /
turn the for loop into a comprehension / add a docstring to this method / swap the order of the two
arguments / wrap it in a try block / make this field private / use early returns instead of nested ifs /
split the class in two / replace the magic number with a named constant / delete the commented-out code
/ add a trailing comma / use a dataclass here / collapse these two functions into one / pull the
condition out into its own function / put the imports in alphabetical order / drop the unused parameter
""",
    "rename": """
rename foo to bar / call the class Reader instead / the name is too long, shorten it / rename the file
to match the class / change tmp to something meaningful / use snake case for these names / rename both
occurrences / the argument should be called timeout / call it parse_line / rename the test too / the
variable name is misleading / give this function a better name / pick a verb for the method name /
rename x and y to row and column / find a better word than handler / use the plural here / rename the
module and fix the imports / prefix the private ones with an underscore
""",
    "error at hand": """
TypeError: 'NoneType' object is not subscriptable / I get a KeyError on line 40 / it says cannot find
module / why is the list empty here? / the build is red, have a look / segmentation fault after the last
change / it hangs when I start it / the output is cut off at the end / there's a stack trace in the
terminal, fix it / undefined is not a function / the test fails only the second time / exit code 137,
why? / permission denied when I run the script / ModuleNotFoundError: No module named 'requests' / it
compiles but crashes right away / warning: unused import / I see the same error again / the type checker
complains about the return value
""",
    "types and tests": """
add type hints to the parameters / write a test for the empty input / cover the error path too /
parametrize these three tests / mock the clock in this test / mark the slow one as slow / make the test
fail first / what is the coverage now? / run only the failing test / remove the flaky assertion / use a
fixture instead of setup / add an assertion for the message / test the edge cases of this function /
make the return type optional / replace Any with a real type / why is mypy unhappy? / snapshot the
output in a test / skip this test on Windows
""",
    "explain code": """
walk me through this function / what does the second argument do? / why is there a lock here? / where is
this called from? / what happens if the input is empty? / is this loop quadratic? / what does the
decorator do? / who owns this pointer? / which branch of the if is taken? / how does this regex work? /
what is the purpose of this file? / why do we copy the list first? / is this thread safe? / what would
happen without the await? / explain the types in this signature / what's the difference between these
two functions? / why is that marked as volatile? / is the cast here really necessary?
""",
    "git at hand": """
squash the last two commits / amend the commit message / rebase onto the latest / what changed since
yesterday? / resolve the conflicts / stash my changes / create a new branch for this / cherry-pick that
commit / who wrote this line? / show me the last five commits / drop the last commit but keep the
changes / discard everything in the working tree / open a draft pull request / write the commit message
for me / is the tree clean? / tag this commit / unstage the second file / check out the previous commit
""",
    "files": """
open the readme / which file defines this class? / how many files are in src? / create an empty file
called notes.txt / move the script into the tools folder / find all files that import json / where is
the config loaded? / show me lines 50 to 80 / search for the word deprecated / print the first ten lines
/ what's in this directory? / delete the temporary files / read the other file as well / count the lines
of code / find the largest file / list the python files that changed / is there a license file? / unzip
the archive
""",
    "shell how-to": """
how do I find files larger than 100 MB? / how do I kill a process on port 3000? / which command shows
disk usage? / how do I make a script executable? / how do I follow a log file? / what does chmod 755
mean? / how do I list open ports on Linux? / grep recursively but ignore a folder, how? / how do I set
an environment variable in zsh? / how do I undo git add? / what's the flag for verbose in curl? / how to
extract a tar.gz? / how do I run a command in the background? / how do I copy a folder over ssh? / what
does 2>&1 do? / how can I see how much memory is free? / how do I rename many files at once? / how do I
count the words in a file?
""",
    "language how-to": """
how do I sort a dictionary by value in Python? / what is a closure in JavaScript? / how do I parse a
date in Go? / difference between let and const? / what does the ? operator do in Rust? / how do I read a
file line by line in Java? / what is a generator? / when should I use an interface instead of a class? /
how do I join two strings in C? / what are traits? / how do async and await work? / what's the
difference between a process and a thread? / how do I make a list unique in Ruby? / what is dependency
injection? / explain the visitor pattern / how do I round to two decimals? / what does idempotent mean?
/ how do you swap two variables without a third?
""",
    "review": """
review this diff / do you see any bugs? / is this idiomatic? / what would you improve here? / is the
naming consistent? / does this handle unicode? / find dead code in this module / are there any security
problems in this function? / anything I forgot? / is this change backwards compatible? / rate the
readability of the code / would you merge this? / check the error handling / is there a simpler way? /
does the comment still match the code? / how risky is this change? / look for off-by-one errors / is the
documentation up to date?
""",
    "performance": """
make it faster / profile this function / cache the result / why is it so slow? / reduce the number of
allocations / use a set instead of a list for lookups / can we run this in parallel? / memory usage
keeps growing / batch the inserts / avoid reading the file twice / what is the complexity of this? /
benchmark both versions / lazy load the images / it takes ten seconds to start / use a generator to save
memory / stream the response instead of buffering it / the page takes forever to load / vectorize the
loop with numpy
""",
    "small features": """
add a progress bar / add a --verbose flag / print the elapsed time at the end / log the request id / add
a retry with backoff / show a spinner while loading / add a dark mode toggle / write the results to a
csv file / make the limit configurable / add pagination to the list / validate the email field / show an
error when the file is missing / center the button / add a help text to the option / return 404 when
nothing is found / make the header sticky / sort the table by date / support reading from stdin
""",
}

STEERING: dict[str, str] = {
    "answers": """
the second file, not the first / yes to all three / only the backend for now / both, but start with the
easy one / no need for that / option b sounds better / use the existing one / I'd say the smaller of the
two / leave it as it is / just this file / it doesn't matter to me / the one from this morning / no
preference, whatever is simpler / somewhere between five and ten / not yet, maybe later / the former /
correct, and the rest as well / about a thousand rows I think
""",
    "corrections": """
no, I meant the other function / that's not what I asked for / you changed the wrong file / you
misunderstood me / wrong, it was fine before / don't touch the other parts / you forgot the last point /
the first answer was better / too much, only change what's needed / you removed a line that we need / I
said shorter, not longer / again you are missing half of it / not there, one level up / that broke
everything / you skipped a step / close, but the order is wrong / this is still the old version / please
stop guessing and look it up
""",
    "pace": """
let's do one thing at a time / slow down please / take your time / quickly please, I have to leave /
skip the explanation / just give me the result / don't ask, just do it / ask me before you change
anything / we are in a hurry / no rush, do it properly / let's finish this first / leave the rest for
tomorrow / do it in small steps / wait until I have read it / go as far as you can without me / pause
after each step / I'll be back in an hour / finish what you started
""",
    "permission": """
you may edit the files / you can run that command / yes, allow it once / feel free to refactor / don't
run anything yet / you have my ok for all of it / sure, delete it / you can install what you need / I
already gave you permission / no, don't delete anything / go ahead and overwrite it / fine, but be
careful / allowed / you can use the network for that / don't write to disk for now / try it, I have a
backup / read only for the moment please / that's ok, I'll check it later
""",
    "frustration": """
this is getting nowhere / why does it always break? / ugh, not again / I've been at this for three hours
/ this makes no sense at all / I'm confused / that's ridiculous / seriously? / it worked yesterday! / I
give up on this one / nothing works today / you keep making the same mistake / this is the fifth time /
sigh / I don't know what to do anymore / how hard can it be? / come on / I'm losing my patience here
""",
    "planning": """
what should we do next? / make a plan first / what are the steps? / how long will this take? / how would
you approach this? / what are the options? / list the pros and cons / what's the biggest risk? / break
it down into smaller tasks / what do you need from me? / where do we start? / is it worth the effort? /
what is the simplest thing that could work? / estimate the effort please / can we do it differently? /
think first, then act / write down the open points / what would you do in my place?
""",
    "session": """
start over / forget everything above / let's switch to another topic / summarize the conversation / what
was my first question? / how full is your context? / remind me where we were / compact the conversation
/ clear the screen / new task / back to the earlier problem / let me paste the rest / ignore my last
message / I restarted the terminal / which tools do you have? / are you still there? / copy your last
answer into a file / what have you done since I left?
""",
    "praise": """
nice one / well done / that's exactly right / you're the best / cool, that's neat / wow, that was fast /
love it / brilliant, next / much better now / good catch / clean solution, I like it / that looks great
on my machine / excellent work on the details / super, das war's / genial, muchas gracias / top, merci /
that's a relief, it finally runs / not bad at all
""",
    "abroad": """
kannst du das bitte kürzer fassen? / was genau hast du geändert? / nein, die andere Datei / puedes
explicarlo con más detalle? / no toques ese archivo / empieza de nuevo / tu peux relancer les tests ? /
non, pas ce fichier / montre-moi le résultat / pode continuar / qual é o próximo passo? / para tudo /
請再試一次 / 先不要改 / どこを変えましたか / 次は何をしますか / продолжай /
что ты изменил? / il codice
non funziona / spiegami l'errore
""",
    "typos": """
lokks good, go on / pls fix teh typo / contineu / whats next / can u run it agian / thx / nvm / lgtm
ship it / idk, you choose / ok do taht / wait waht / yep / nope / gimme the diff / cant open it / brb /
k / dont do that
""",
    "long chatter": """
ok so I was in meetings all morning and only had time to look at it now, please go on where you stopped
/ sorry for the long silence, my laptop died and I had to borrow one, let's pick it up again / I think I
like it, but let me sleep on it and I'll tell you tomorrow / I showed it to a friend and she was quite
impressed, so let's keep going like this / my coffee is getting cold, so please be brief today / it's
Friday afternoon and I want to go home, so let's wrap up quickly / I'm reading your answer on my phone,
please keep the lines short / I don't fully get it yet but I trust you, so do it the way you proposed /
before we go on, tell me in one or two sentences what you did while I was away / it is late here and I
can't think straight anymore, let's stop at a good point / my colleague is looking over my shoulder, so
explain what you do as you go / I'll be on the train for the next hour with bad reception, just keep
working / please be patient with me, I am new to all of this / we have ten minutes left before the demo,
only do what is really needed / let's see how far we get today and do the rest some other time / I
changed my mind, the way it was in the beginning is fine after all / that was a lot of text, can you
tell me the important bits only / I wanted to say that the last few days with you were really productive
""",
    "output": """
in a table please / as json / without the comments / only the changed lines / with line numbers / full
file please / don't repeat the code / use plain text / as a numbered list / translate the comments to
English / add headings / no markdown / just the command, nothing else / show both versions side by side
/ less detail / more detail on the second point / write it so that a beginner understands it / one
paragraph at most
""",
}

ELSEWHERE: dict[str, str] = {
    "geography": """
what is the capital of Mongolia? / how many people live in Nairobi? / which river runs through Vienna? /
is Greenland part of Europe? / what's the highest mountain in Africa? / which countries border Laos? /
how far is it from Oslo to Bergen? / what time zone is Perth in? / where is the Atacama desert? / which
sea does the Danube flow into? / name five islands in the Caribbean / what language do they speak in
Suriname? / which state is Boise in? / how deep is Lake Baikal? / what is the smallest country in the
world? / where does the Amazon begin? / is Istanbul in Asia? / which city has the most bridges?
""",
    "cooking": """
how long do I boil an egg? / what can I cook with leeks and potatoes? / how do I keep bread fresh? / can
I replace butter with oil in a cake? / give me a recipe for lentil soup / what spices go into a curry? /
how much rice for four people? / how do I sharpen a kitchen knife? / is it safe to eat mouldy cheese? /
what is the best flour for pizza? / how do I make oat milk? / why is my sourdough flat? / how hot should
the oven be for salmon? / what wine goes with mushrooms? / how do you poach a pear? / can you freeze
cooked pasta? / what's a good breakfast without sugar? / how do I get garlic smell off my hands?
""",
    "mathematics": """
what is 17 percent of 240? / solve x squared minus 5x plus 6 equals zero / what's the square root of
1764? / how many seconds are in a leap year? / convert 75 fahrenheit to celsius / what is the derivative
of sin x times x? / is 221 a prime number? / how many ways can I arrange six books? / what's the area of
a circle with radius 3? / what is a standard deviation? / integrate 1 over x from 1 to e / how much is 3
miles in kilometres? / what is the probability of two sixes in a row? / explain Bayes' theorem with an
example / how do logarithms work? / what is 0.1 plus 0.2? / sum of the first hundred integers? / write
255 in binary
""",
    "writing": """
write a birthday poem for my aunt / draft an apology to my neighbour about the noise / give me a title
for a story about a lighthouse / make this sentence sound friendlier: send it now / write a haiku about
rain / give me ten names for a cat / write a limerick about a goat / find a synonym for enormous / how
do I start a cover letter? / write a toast for a wedding / correct my grammar: he don't like apples /
think of a slogan for a bakery / write a short bedtime story with a dragon / what rhymes with orange? /
a nice closing line for a condolence card / write an out-of-office reply / how do I end a formal letter?
/ suggest a theme for a summer party
""",
    "health": """
how much water should I drink a day? / how do I get rid of hiccups? / what helps against a stiff neck? /
is running bad for the knees? / how many hours of sleep do I need? / what are the symptoms of the flu? /
how do I lower my blood pressure? / is coffee healthy? / what should I pack in a first aid kit? / how do
I treat a wasp sting? / which vitamins are in kale? / why do my eyes hurt after work? / how often should
I replace my toothbrush? / how do I meditate? / what stretches help after sitting all day? / what's a
normal resting pulse? / how do I stop biting my nails? / does cold weather cause colds?
""",
    "travel": """
what should I see in Lisbon in two days? / do I need a visa for Vietnam? / what's the best month to
visit Iceland? / how do I get from the airport to the centre of Rome? / is it safe to drink tap water in
Mexico? / what should I pack for a week of hiking? / how does the Paris metro work? / which side do they
drive on in Malta? / how much do you tip in Japan? / can I take a knife in checked luggage? / recommend
a beach in Croatia / what plug do they use in Brazil? / how early should I be at the airport? / is there
a night train from Vienna to Venice? / what's a good day trip from Munich? / how do I avoid jet lag? /
best way to see the northern lights? / do I need a car in Crete?
""",
    "history": """
who was the first person on the moon? / when did the Roman empire fall? / why did the Titanic sink? /
who painted the night watch? / what caused the first world war? / when was the printing press invented?
/ who was Cleopatra? / what was the Hanseatic league? / when did women get the vote in Switzerland? /
how old are the pyramids? / who discovered penicillin? / what was the silk road? / who wrote Don
Quixote? / when was the wall in Berlin built? / how did the Vikings navigate? / who invented the
bicycle? / which king had six wives? / what is the Magna Carta?
""",
    "science": """
why is the sky blue? / how do magnets work? / what is a black hole? / why do cats purr? / how fast does
light travel? / what is the difference between a virus and a bacterium? / how do bees make honey? / why
do leaves turn red in autumn? / what are quarks? / how does a microwave heat food? / why is seawater
salty? / how do vaccines work? / what causes thunder? / how old is the universe? / why do we dream at
night? / what is an isotope? / how do birds find their way? / what is dark matter?
""",
    "home": """
how do I unclog a sink? / how often should I water a cactus? / how do I remove a red wine stain? / what
paint do I need for a bathroom? / how do I hang a shelf on plasterboard? / why does my radiator gurgle?
/ how do I bleed a radiator? / which plants survive in the shade? / how do I get rid of fruit flies? /
how do I fold a fitted sheet? / what do I feed a hedgehog? / when do I prune roses? / how do I descale a
kettle? / my door squeaks, what can I do? / how do I fix a flat bicycle tyre? / how do I whiten old
sneakers? / what's the best way to clean windows? / how do I stop a tap from dripping?
""",
    "film and music": """
who directed Blade Runner? / recommend a film like Amelie / how many strings does a cello have? / who
sang Bohemian Rhapsody? / what is a minor seventh chord? / which actor played Gandalf? / what's a good
book by Ursula Le Guin? / how long is the Lord of the Rings trilogy? / what are the rules of cricket? /
who won the world cup in 1998? / how do I learn the guitar? / recommend a podcast about space / what is
the plot of Hamlet? / which instruments are in a jazz trio? / how long is a marathon? / what's the
offside rule? / name three operas by Verdi / who wrote the Moonlight sonata?
""",
    "money and law": """
what is compound interest? / how does inflation work? / should I rent or buy a flat? / what is an index
fund? / how do I write a will? / what does a notary do? / how much should I save for retirement? / what
is the difference between gross and net? / can my landlord raise the rent? / how do I ask for a raise? /
what's a mortgage? / what does force majeure mean? / how is VAT calculated? / what happens at a job
interview? / how do I split a restaurant bill fairly? / what is a trademark? / how do credit scores
work? / can I return shoes that I have worn?
""",
    "words and languages": """
what does schadenfreude mean? / how do you say thank you in Finnish? / translate good night into Welsh /
what is the plural of octopus? / where does the word robot come from? / how do you pronounce quinoa? /
is it affect or effect? / what does the idiom spill the beans mean? / how many letters has the Greek
alphabet? / what is a palindrome? / translate "the weather is lovely" into Spanish / what does RSVP
stand for? / which languages use the Cyrillic script? / how do you spell accommodate? / what's the
opposite of generous? / what is an oxymoron? / who speaks Basque? / how do I learn Chinese characters?
""",
}

FRESH_SETS = {"at hand": AT_HAND, "steering": STEERING, "elsewhere": ELSEWHERE}


def list_fresh_prompts(name: str, *, is_tuned: bool) -> tuple[str, ...]:
    """Of one set, the prompts of the kinds that may be tuned on, or of the others."""
    kinds = list(FRESH_SETS[name].values())[0 if is_tuned else 1 :: 2]
    return tuple(prompt for text in kinds for prompt in " ".join(text.split()).split(" / "))
