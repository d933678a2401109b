"""Words that say whether a full stop after or before them ends a sentence.

Lists for English, Portuguese, French, Spanish, German and Italian prose, with a few of Dutch and
Hindi; all languages at once, because a document quotes others. A word is listed only if taking it
for an abbreviation everywhere costs less than missing it: a full stop before a word that opens
sentences (`OPENERS`) ends one all the same, except after what always goes on (`NEVER_LAST`).
"""


def _words(*lists: str) -> frozenset[str]:
    return frozenset(word for words in lists for word in words.split())


NEVER_LAST = _words(
    "vs cf cfr viz approx resp incl excl esp",
    "см",
    "vgl bzw bspw evtl ggf inkl exkl zzgl abzgl sog insb insbes einschl zw",
)
"""Something always follows, whatever it begins with."""

ABBREVIATIONS = _words(
    # en
    "mr mrs ms messrs mx dr drs prof profs rev hon capt cpt sgt lt lieut cmdr cdr adm gov supt"
    " st ste mt ft inc ltd corp llc plc jr bros dept univ assn ave blvd al intl natl govt mgr"
    " asst assoc tue tues thu thur thurs",
    # pt
    "sr sra srs sras srta dra dras profa profas exmo exma exmos exmas ilmo ilma exa eng engº"
    " enga arq adv av pe cia ltda lda depto apto trav pç gal cel sto sta",
    # fr
    "mme mmes mlle mlles mgr boul cie éd coll env apr",
    # es
    "sres srtas dña dres lic mtro mtra ud uds vd vds ee uu avda gral cnel tte sgto pdte dpto"
    " cía admón excmo excma rvdo aprox máx mín izq dcha pza urb",
    # de
    "hr hrn dipl ing geb gest verh hl ev kath gem mio mrd tsd zzt dt engl franz österr allg"
    " betr bez bezgl abt jh jhd jhdt hrsg verf vors stv stellv str gr kl",
    # it
    "sig sigg sigra sigri dott avv arch geom rag egr spett gent preg cav comm uff",
    # nl
    "dhr mevr mw ir bv nv",
    # hi
    "डॉ प्रो श्री पं रु",
)
"""Go on unless an opener follows; in any case of letters."""

CAPITALISED = _words(
    "MM Bd Gen Col Sen Rep Maj Pres Min Cap Dep Ed Eds Co Mon Wed Fri Rd Fr Pr On Ten Ill Sec"
)
"""The same, but words of some language unless written like this."""

NUMBERED = _words(
    "no nos nr nrs nrn num núm núms nº nᵒ fig figs abb vol vols bd bde ch chap chs cap caps capp"
    " sec secs sect séc sécs sez eq eqs eqn tab tabs ref refs pp pag pág págs pagg art arts artt"
    " abs ziff abschn rn rz kap anm para paras inc alín ver vers tel tél tfno telef ext ca nn"
    " fl fls fasc",
    "jan feb mar apr may jun jul aug sep sept oct nov dec okt dez mär fev abr mai ago set out"
    " janv févr avr juil août déc ene dic gen mag giu lug sett ott",
    "рис стр гл табл",
)
"""Abbreviate before a number; before anything else they are words that may end a sentence."""

FOR_EXAMPLE = frozenset(("p ex", "por ex", "par ex", "p ej", "por ej", "ad es", "p es", "per es"))
"""Two words, the second of which is a word of its own."""

ORDINAL_NOUNS = _words(
    "januar jänner februar märz april mai juni juli august september oktober november dezember"
    " montag dienstag mittwoch donnerstag freitag samstag sonntag"
    " jahrhundert jahrhunderts jahrhunderte jahrtausend jh jhd jahrgang jahrestag lebensjahr"
    " geburtstag quartal halbjahr semester tag tage woche monat jahr mal platz rang auflage band"
    " kapitel klasse etage stock stockwerk obergeschoss weltkrieg spieltag liga runde minute"
    " sitzung bezirk armee division hälfte teil schritt stufe absatz satz fassung ausgabe"
    " jan feb mär apr jun jul aug sep sept okt nov dez",
    "januari februari maart mei juni juli augustus oktober januar februar marts maj oktober",
)
"""German writes an ordinal number with a full stop: `3. Mai`, `19. Jahrhundert`."""

ORDINAL_DETERMINERS = _words(
    "der die das den dem des im vom zum zur beim ab jeder jede jedes sein seine ihr ihre unser"
    " unsere mein meine ein eine einem einen einer eines"
)
"""Before a number with a full stop, and a noun after it, it is an ordinal too: `der 2. Band`."""

LABELLED = _words(
    "plan plans vitamin vitamins hepatitis type class option grade group team part section"
    " appendix annex exhibit schedule model version point figure table case variant box war"
    " plano vitamina tipo classe opção grupo equipa equipe parte secção seção anexo caso ponto"
    " type groupe option équipe partie annexe cas point vitamine hépatite guerre"
    " opción grupo equipo sección caso punto clase guerra"
    " typ klasse gruppe teil anhang fall punkt variante krieg"
    " piano opzione gruppo squadra sezione allegato punto"
)
"""Before a single capital, that is a label and no initial: `plan B. Peter agreed.`"""

OPENERS = _words(
    # en
    "the this that these those there then it he she we they you i my your his her its our their"
    " but and if when while where who what why how in on at by for from with without as after"
    " before because although though however once since until some many most all any each every"
    " no not now here also another both such even only just let is are was were has have had can"
    " could should would must did does please to of an a one several few unlike despite during"
    " instead finally first second next later soon still yet nobody nothing something according",
    # pt
    "o os as um uma uns umas ele ela eles elas este esta estes estas esse essa isto isso aquele"
    " aquela mas porém depois quando se não em no na nos nas por para com sem como que quem onde"
    " também assim então já ainda agora nós você vocês eu seu sua seus suas todos todas cada há"
    " foi era são ao à aos às até além entre desde porque embora apesar segundo",
    # fr
    "il elle ils elles on nous vous je tu ce cette ces cet les un une mais et puis alors si dans"
    " pour par sur avec sans après avant comme qui où pourquoi comment son sa ses leur leurs qu"
    " notre nos votre vos mon ma mes tous toutes chaque aucun aucune ainsi donc car en au aux"
    " depuis pendant lorsque quand cependant toutefois enfin ensuite aujourd personne rien",
    # es
    "un una unos unas él ella ellos ellas este estos estas ese esa eso esto aquel pero y luego"
    " después cuando si por para con sin qué quien donde dónde cómo así entonces ya aún ahora"
    " nosotros usted ustedes yo su sus todos cada hay fue era es al hasta además según aunque"
    " nadie nada tras mi más solo sólo también",
    # de
    "der die den dem ein eine einen einem einer er sie es wir ihr ich dies diese dieser dieses"
    " aber und oder doch dann wenn als ob weil im in am auf aus bei mit nach vom zum zur für"
    " durch über unter um ohne nicht kein keine auch nur noch schon nun jetzt hier dort wie was"
    " wer wo warum sein seine ihre unser unsere alle jeder jede während danach deshalb jedoch"
    " außerdem bis beim dabei dazu damit viele bitte heute niemand nichts später seit",
    # it
    "gli uno egli lui lei essi noi voi io questo questa questi queste quello quella quell ma e"
    " è poi dopo quando se non nel nella nell nei negli nelle per con senza chi dove anche così"
    " allora già ancora ora si ci suo sua suoi fu era tutti ogni alla all ai fino inoltre dal"
    " dalla dall perché nessuno",
    # ru
    "он она они оно мы вы я это этот эта но и а затем потом в на с когда если после для все",
    # nl
    "het een hij zij wij ik dit deze maar en toen daarna niet ook nog",
)
"""Words that open sentences and, capitalised, are hardly ever a name's second part."""

WEAK_OPENERS = _words("le la los las el lo il de da do das di du")
"""Openers that are also parts of names (`P. Le Goff`): only before a word in lower case."""

ELIDED_OPENERS = _words("l c j n s")
"""Openers before an apostrophe: `L'équipe`, `C'est`."""

ONE_LETTER_WORDS = _words("है हैं हूँ हूं हो था थे थी हुआ लो दो गए गई ना जी")
"""Words of one letter and its vowel in scripts without capitals, which are no initials."""
